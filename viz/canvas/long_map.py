"""One head on a long text, for the long_map component: a coarse picture of all, and a closer look."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from viz.drawing import Coded, Drawing, named
from viz.theme import WEIGHTS, Array, colour_scales


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
    path: str = "",
    head: int = 0,
) -> Drawing:
    """The picture; of `pattern[head]` at `path` it takes each look, coded, and the row of the chosen query.

    A look is named pattern[head, top:bottom, left:right], one of larger squares ends with their size: "... in 4 × 4".

    Args:
        looks: the whole plane first; those after it are drawn over it.
        tokens: plain-text label of each position.
        row: the query whose weights are sent as they are; None: of none.
        weights: (key,), those of `row`.
        measure: what the numbers are.
        title: what the picture shows; another title starts with the whole plane again.
        path: of the attention in the model.
        head: its number in the layer.

    Raises:
        ValueError: the first look is not of the whole plane, or a row has no weights.
    """
    whole, n = looks[0], len(tokens)
    rows, columns = (side * whole.size for side in whole.values.shape)
    if whole.top or whole.left or min(rows, columns) < n:
        raise ValueError(f"The first look covers {rows} queries and {columns} keys of {n} tokens.")
    if (row is None) != (weights is None):
        raise ValueError("A row comes with its weights, and weights with their row.")
    looked = {_name(look, path, head): look for look in looks}
    arrays: dict[str, Array | Coded] = {name: Coded(look.values) for name, look in looked.items()}
    of_row = None if row is None else named(path, "pattern", head, row)
    if of_row is not None:
        arrays[of_row] = np.asarray(weights)
    header = {
        "looks": [
            {"top": look.top, "left": look.left, "size": look.size, "array": name} for name, look in looked.items()
        ],
        "tokens": list(tokens),
        "row": row,
        "weights": of_row,
        "measure": measure,
        "title": title or measure,
        "scale": colour_scales()[WEIGHTS],
    }
    return Drawing.pack("long_map", header, arrays)


def _name(look: LongWindow, path: str, head: int) -> str:
    """What a look is of: a part of the weights, or the largest of each of its squares."""
    (top, bottom), (left, right) = (
        (start, start + look.size * cells)
        for start, cells in zip((look.top, look.left), look.values.shape, strict=True)
    )
    squares = f" in {look.size} × {look.size}" if look.size > 1 else ""
    return named(path, "pattern", head, f"{top}:{bottom}", f"{left}:{right}") + squares
