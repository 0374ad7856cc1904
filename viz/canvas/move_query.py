"""A head's keys in a plane, and a query to move in it, for the move_query component."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from viz.drawing import Drawing, named
from viz.theme import KEY, QUERY, WEIGHTS, colour_scales

Array = np.ndarray
PLANE = ("keys", "queries", "rest")
OF_HEAD = ("pattern", "mask", "v", "z", "bias")


def move_query(
    plane: Mapping[str, Array], attention: Any, head: int, names: tuple[Sequence[str], Sequence[str]], **header: Any
) -> Drawing:
    """The picture; of the attention's arrays it takes pattern, mask, v, z, and bias where there is one.

    Args:
        plane: keys (key, 2) from their mean, queries (query, 2) and rest (query, key).
        attention: a model.trace.Attention.
        head: its number.
        names: plain-text name of each query, and of each key.
        header: title; row, the chosen query; mean, of the keys in the plane; shares of variance; outside, of each
            query; scale, softcap, sink and temperature of the run.
    """
    parts = {name: getattr(attention, name) for name in OF_HEAD if getattr(attention, name) is not None}
    arrays = {named("plane", name): plane[name] for name in PLANE}
    arrays |= {named(attention.path, name, head): part[head] for name, part in parts.items()}
    header |= {"path": attention.path, "head": head, "queries": list(names[0]), "keys": list(names[1])}
    header |= {"biased": "bias" in parts, "colours": colour_scales()[WEIGHTS]}
    return Drawing.pack("move_query", header | {"query_colour": QUERY, "key_colour": KEY}, arrays)
