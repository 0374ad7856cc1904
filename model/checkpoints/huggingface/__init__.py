"""Any Transformer of the transformers library, read through this project's hook points.

from model.checkpoints.huggingface import open_model

opened = open_model(model, tokenizer)      # or the path of a folder that `save_pretrained` wrote
opened.trace("text").attention("decoder_self", 0).pattern
"""

from typing import Any

from model.extras import say_missing

__all__ = ["open_model"]


def __getattr__(name: str) -> Any:
    """Import `open_model` when it is asked for; where transformers is missing, say what installs it."""
    if name != "open_model":
        raise AttributeError(name)
    try:
        from model.checkpoints.huggingface.opening import open_model
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(say_missing(error), name=error.name) from error
    return open_model
