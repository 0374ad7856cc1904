"""Any Transformer of the transformers library, read through this project's hook points.

from model.checkpoints.huggingface import open_model

opened = open_model(model, tokenizer)      # or the path of a folder that `save_pretrained` wrote
opened.trace("text").attention("decoder_self", 0).pattern
"""

from model.checkpoints.huggingface.opening import open_model

__all__ = ["open_model"]
