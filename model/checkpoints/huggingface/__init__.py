"""Any Transformer of the transformers library, read through this project's hook points.

from model.checkpoints.huggingface import open_model

opened = open_model(model, tokenizer)      # or the path of a folder that `save_pretrained` wrote
opened.trace("text").attention("decoder_self", 0).pattern
"""

from model.extras import say_missing

try:
    from model.checkpoints.huggingface.opening import open_model
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(say_missing(error), name=error.name) from error

__all__ = ["open_model"]
