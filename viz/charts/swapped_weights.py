"""Figures of Is attention an explanation?: how swapped weights move the output, and weights against value zeroing."""

from collections.abc import Sequence
from math import log

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from viz.bars import position_chart
from viz.figure import figure, scatter
from viz.theme import CHOSEN, GUIDE, OKABE_ITO, VALUE
from viz.tokens import as_plotly, labels

Array = np.ndarray

MEASURES = {"tv": ("total variation", 1.0, "0 to 1"), "jsd": ("Jensen-Shannon divergence", log(2), "0 to ln 2 nats")}


def swap_scatter(
    weights_moved: Array, output_moved: Array, measure: str, chosen: tuple[int, int], title: str
) -> go.Figure:
    """A point for each head: how far its attention weights were moved, and how far the output moved with them.

    Args:
        weights_moved: (layers, heads) mean distance of the rows of weights; NaN where not run.
        output_moved: (layers, heads) mean distance of the next-token distributions; NaN where not run.
        measure: "tv" or "jsd".
        chosen: layer and head to mark.
        title: of the swap, plain text.
    """
    name, limit, span = MEASURES[measure]
    axis = {"range": [-0.03 * limit, 1.03 * limit], "zeroline": False}
    diagonal = {"type": "line", "x0": 0, "y0": 0, "x1": limit, "y1": limit}
    return figure(
        [_head_points(weights_moved, output_moved, chosen)],
        height=420,
        title={"text": as_plotly(title), "font": {"size": 14}},
        xaxis=axis | {"title": f"attention weights moved: {name}, {span}"},
        yaxis=axis | {"title": f"output moved: {name}, {span}"},
        shapes=[diagonal | {"line": {"color": GUIDE, "dash": "dot", "width": 1}}],
    )


def _head_points(weights_moved: Array, output_moved: Array, chosen: tuple[int, int]) -> dict:
    layers, heads = (axis.ravel() for axis in np.indices(weights_moved.shape))
    marked = (layers == chosen[0]) & (heads == chosen[1])
    return scatter(
        x=weights_moved.ravel(),
        y=output_moved.ravel(),
        mode="markers+text",
        text=[f"{layer}.{head}" if mark else "" for layer, head, mark in zip(layers, heads, marked, strict=True)],
        textposition="top center",
        marker={
            "size": np.where(marked, 14, 9),
            "color": np.array(OKABE_ITO)[heads % len(OKABE_ITO)],
            "symbol": np.where(marked, "diamond", "circle"),
            "line": {"color": np.where(marked, CHOSEN, GUIDE), "width": np.where(marked, 3, 0.5)},
        },
        customdata=np.stack([layers, heads], axis=1),
        hover="layer %{customdata[0]}, head %{customdata[1]}<br>attention weights moved <b>%{x:.6f}</b><br>"
        "output moved <b>%{y:.6f}</b>",
        showlegend=False,
    )


def zeroing_bars(keys: Sequence[str], weights: Array, shares: Array) -> go.Figure:
    """Each key's attention weight and its share of value zeroing, both the mean of all rows.

    Args:
        keys: pieces.
        weights: (key,) mean attention weight, sum 1.
        shares: (key,) mean share of how far the rows' outputs turn without the key's value.
    """
    hatched = {"color": VALUE, "pattern": {"shape": "/"}}
    series = {"attention weight": (weights, {"color": OKABE_ITO[0]}), "value zeroing": (shares, hatched)}
    return position_chart(labels(keys), series, 340, ("key", "share of the row, mean"), what="key")


def zeroing_table(keys: Sequence[str], weights: Array, shares: Array, changes: Array) -> pd.DataFrame:
    """A line for each key: weight, value zeroing, and the change in the translation's log p without its value."""
    return pd.DataFrame(
        {
            "position": range(len(keys)),
            "key": labels(keys),
            "attention weight": weights,
            "value zeroing": shares,
            "change in log p, nats": changes,
        }
    )
