"""One word on its way through one head, and the same word in all heads, for the explore component."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from viz.canvas.matrices import Axis, Equation, Matrix, pack_equations
from viz.drawing import Drawing
from viz.theme import WEIGHTS

Array = np.ndarray

MOST_CELLS = 65_536
"""of one matrix that is sent whole; of a larger one only the row of the chosen word"""


@dataclass(frozen=True)
class Side:
    """The tokens of one text, as buttons."""

    name: str
    """source, target or text: what it is called on screen"""
    tokens: Sequence[str]
    """plain-text labels (viz.tokens.labels)"""
    probabilities: Sequence[float | None]
    """that the model gave to each token; None: to this one none"""
    kind: str
    """the attention that a click on a token opens, if the chosen one has its queries elsewhere"""
    first: int = 0
    """the token that row 0 of this attention stands for: 1 where rows stand for what they predict"""
    asks: bool = True
    """whether the chosen attention has its queries here"""
    answers: bool = True
    """whether it has its keys here"""


@dataclass(frozen=True)
class Box:
    """One step of the way."""

    name: str
    """of the step: x, qkv, scores, divided, before, mask, softmax, z or out"""
    title: str
    """on screen; `_` starts a subscript"""
    why: str
    """one sentence"""
    equation: Equation
    """its matrices, the operators between them"""


def whole_or_row(matrix: Matrix, place: int) -> Matrix:
    """The matrix itself, or of a very large one the row at `place`."""
    if matrix.values.size <= MOST_CELLS:
        return matrix
    label = matrix.rows.labels[place : place + 1]
    row = slice(place, place + 1)
    allowed = None if matrix.allowed is None else matrix.allowed[row]
    return replace(
        matrix, values=matrix.values[row], rows=replace(matrix.rows, size=1, labels=label, notes=()), allowed=allowed
    )


def explore(
    sides: Sequence[Side],
    boxes: Sequence[Box],
    heads: tuple[Sequence[tuple[int, int]], Array, Array],
    keys: Axis,
    **header,
) -> Drawing:
    """The picture (`pack_equations`): an equation for each box, and then the rows of all heads.

    Args:
        sides: the texts whose tokens can be chosen.
        boxes: the steps, in the order of reading.
        heads: (layer, head) of each row, the chosen word's weights, (row, key), and where they are not masked.
        keys: of the weights.
        **header: kind; place, the chosen (layer, head); query and key, their positions; names, of both in words;
            title, of the picture; sorted, whether the rows of all heads begin in the order of the chosen key;
            temperature, of the head in the run; taus, those offered for a run, or none; place_title.
    """
    places, weights, allowed = heads
    rows = Axis("head", "heads", len(places), tuple(f"L{layer} H{head}" for layer, head in places))
    matrix = Matrix("heads", weights, rows, keys, "", WEIGHTS, 0, 1, allowed)
    described = [{name: value for name, value in vars(box).items() if name != "equation"} for box in boxes]
    return pack_equations(
        "explore",
        (*(box.equation for box in boxes), (matrix,)),
        boxes=described,
        sides=[vars(side) for side in sides],
        places=[list(place) for place in places],
        **header,
    )
