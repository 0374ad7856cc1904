"""Figures of Temperature: the live picture, one row at several temperatures, and its entropy."""

from collections.abc import Mapping, Sequence

import numpy as np

from viz.canvas.matrices import Axis, Matrix, pack_equations
from viz.drawing import Drawing
from viz.theme import WEIGHTS

Array = np.ndarray


def live_weights(
    names: tuple[Sequence[str], Sequence[str]], notes: Sequence[str], cells: Mapping[str, Array], **header
) -> Drawing:
    """For the temperature component: the head's own scores and weights.

    Args:
        names: of the queries and of the keys, plain text.
        notes: additions to the names of the queries where there is room, what a decoder row predicts; or empty.
        cells: `mask`, bool; `scaled`, scores / sqrt(d_k); `pattern`, the run's weights; (query, key) each.
        header: title; temperature, of the run; taus, those offered for a run; row, the chosen query; scope, in words;
            changes, how many others are at work in the run.
    """
    queries = Axis("query", "queries", len(names[0]), tuple(names[0]), tuple(notes))
    keys = Axis("key", "keys", len(names[1]), tuple(names[1]))
    mask = cells["mask"]
    masked = np.where(mask, cells["scaled"], -np.inf)
    weights = Matrix("weights", cells["pattern"], queries, keys, "", WEIGHTS, 0, 1, mask, result=True)
    return pack_equations("temperature", ((weights, Matrix("masked", masked, queries, keys, allowed=mask)),), **header)
