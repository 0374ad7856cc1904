"""The static pages: a model in JavaScript, the pictures' scripts and a recorded run, for any static host."""

from collections.abc import Mapping

from model.checkpoints.store import DEFAULT_CHECKPOINT

FIRST = "index"
"""file of the first page of a folder, without its ending"""
SHIPPED: Mapping[str, str] = {DEFAULT_CHECKPOINT: FIRST, "everyday-lm": "continue"}
"""checkpoint -> its page in the folder that `make site` builds"""
