"""Lesson 13: what people are asked about attention."""

from model.background.layer_size import LayerSize
from model.run import Run
from pages.lessons.reading import Facts


def size(run: Run) -> Facts:
    """The size of the attention on screen."""
    return {"size": LayerSize.read(run.attention)}
