"""One head on a long text, for the long_map component: a coarse picture of all, and a closer look.

Numbers are 16-bit codes as in viz.canvas.mosaic: 0 is a masked cell, code c the weight (c - 1) * unit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from viz.canvas.mosaic import LARGEST_CODE, encode_weights
from viz.drawing import Drawing
from viz.theme import WEIGHTS, colour_scales

Array = np.ndarray


@dataclass(frozen=True)
class LongWindow:
    """A rectangle of the (query, key) plane."""

    values: Array
    """(rows, columns), none negative; NaN is masked; each the largest of a square of `size` queries and keys"""
    top: int
    """first query"""
    left: int
    """first key"""
    size: int = 1


def long_map(
    looks: Sequence[LongWindow],
    tokens: Sequence[str],
    *,
    row: int | None = None,
    weights: Array | None = None,
    measure: str = "attention weight",
    title: str = "",
) -> Drawing:
    """The picture (Drawing.pack): uint16 codes of each look, then the float32 weights of the chosen row.

    Args:
        looks: the whole plane first; those after it are drawn over it.
        tokens: plain-text label of each position.
        row: the query whose weights are sent as they are; None: of none.
        weights: (key,), those of `row`.
        measure: what the numbers are.
        title: what the picture shows; another title starts with the whole plane again.

    Raises:
        ValueError: the first look is not of the whole plane, or a row has no weights.
    """
    whole, n = looks[0], len(tokens)
    rows, columns = (side * whole.size for side in whole.values.shape)
    if whole.top or whole.left or min(rows, columns) < n:
        raise ValueError(f"The first look covers {rows} queries and {columns} keys of {n} tokens.")
    if (row is None) != (weights is None):
        raise ValueError("A row comes with its weights, and weights with their row.")
    largest = float(np.nanmax(whole.values, initial=0)) or 1.0
    unit = largest / (LARGEST_CODE - 1)
    header = {
        "looks": [
            {"top": look.top, "left": look.left, "size": look.size, "shape": list(look.values.shape)} for look in looks
        ],
        "tokens": list(tokens),
        "unit": unit,
        "high": largest,
        "row": row,
        "measure": measure,
        "title": title or measure,
        "scale": colour_scales()[WEIGHTS],
    }
    exact = [] if weights is None else [np.asarray(weights, dtype="<f4")]
    codes = [encode_weights(np.asarray(look.values, np.float32), unit) for look in looks]
    return Drawing.pack("long_map", header, [*codes, *exact])
