"""A head's keys in a plane, and a query to move in it, for the move_query component."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from viz.drawing import Drawing
from viz.theme import KEY, QUERY, WEIGHTS, colour_scales

Array = np.ndarray
ARRAYS = ("keys", "queries", "rest", "pattern", "v", "z")
"""in the order in which they are packed; after them `mask`, and `bias` where there is one"""


def move_query(
    cells: Mapping[str, Array], queries: Sequence[str], keys: Sequence[str], bias: Array | None, **header: Any
) -> Drawing:
    """The picture (Drawing.pack).

    Args:
        cells: keys (key, 2) from their mean, queries (query, 2) and rest (query, key) of the plane; the run's pattern
            (query, key), v (key, d_v), z (query, d_v) and mask (query, key).
        queries: plain-text name of each query.
        keys: plain-text name of each key.
        bias: (query, key), added before the softmax; None: nothing is.
        header: title; row, the chosen query; mean, of the keys in the plane; shares of variance; outside, of each
            query; scale, softcap, sink and temperature of the run.
    """
    header |= {"queries": list(queries), "keys": list(keys), "d_v": cells["v"].shape[1], "biased": bias is not None}
    header |= {"colours": colour_scales()[WEIGHTS], "query_colour": QUERY, "key_colour": KEY}
    arrays = [cells[name].astype("<f4") for name in ARRAYS]
    biases = [] if bias is None else [bias.astype("<f4")]
    return Drawing.pack("move_query", header, [*arrays, cells["mask"].astype(np.uint8), *biases])
