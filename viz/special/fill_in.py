"""Figures of a masked language model's guesses."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from viz.figure import NO_GRID, bar, escape, figure
from viz.theme import ENCODER


def row_weights(keys: Sequence[str], weights: np.ndarray) -> go.Figure:
    """The attention weights of one query, a bar a key, the first key on top.

    Args:
        keys: unique names of the keys.
        weights: (key,)
    """
    bars = bar(
        x=weights,
        y=escape(keys),
        orientation="h",
        marker={"color": ENCODER},
        hover="%{y}: <b>%{x:.4f}</b><extra></extra>",
    )
    return figure(
        [bars],
        height=90 + 22 * len(keys),
        xaxis={"title": "attention weight", "range": [0, 1]},
        yaxis=NO_GRID | {"autorange": "reversed", "automargin": True, "type": "category", "dtick": 1},
    )
