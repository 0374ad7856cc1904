"""How swapped weights move the output: a point for each head."""

from math import log

import numpy as np
import plotly.graph_objects as go

from viz.figure import figure, scatter
from viz.theme import CHOSEN, GUIDE, OKABE_ITO, Array
from viz.tokens import as_plotly

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
