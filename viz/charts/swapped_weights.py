"""Is attention an explanation? How far picture and output move apart, and weights beside value zeroing."""

import html
from collections.abc import Sequence
from math import log

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from viz.figure import Draft
from viz.theme import OKABE_ITO, VALUE, layout
from viz.tokens import labels, ticks

Array = np.ndarray

MEASURES = {"tv": ("total variation", 1.0, "0 to 1"), "jsd": ("Jensen-Shannon divergence", log(2), "0 to ln 2 nats")}
WEIGHT, ZEROED, CHOSEN = OKABE_ITO[0], VALUE, OKABE_ITO[5]


def moved_scatter(picture: Array, output: Array, measure: str, chosen: tuple[int, int], title: str) -> go.Figure:
    """A point a head: how far its attention weights were moved, and how far the output moved with them.

    Args:
        picture: (layers, heads) mean distance of the rows of weights; NaN where not run.
        output: (layers, heads) mean distance of the distributions of the next token; NaN where not run.
        measure: "tv" or "jsd".
        chosen: layer and head to mark.
        title: of the swap, plain text.
    """
    name, limit, span = MEASURES[measure]
    draft = Draft().add_trace(_heads(picture, output, chosen))
    line = {"color": "#8c8c8c", "dash": "dot", "width": 1}
    draft.add_shape(type="line", x0=0, y0=0, x1=limit, y1=limit, line=line)
    x_title = f"attention weights moved: {name}, {span}"
    layout(draft, 420, x_title, f"output moved: {name}, {span}")
    pad = 0.03 * limit
    draft.update_xaxes(range=[-pad, limit + pad], zeroline=False)
    draft.update_yaxes(range=[-pad, limit + pad], zeroline=False)
    return draft.update_layout(title={"text": html.escape(title), "font": {"size": 14}}).figure()


def _heads(picture: Array, output: Array, chosen: tuple[int, int]) -> dict:
    layers, heads = (axis.ravel() for axis in np.indices(picture.shape))
    marked = (layers == chosen[0]) & (heads == chosen[1])
    colours = np.array(OKABE_ITO)[heads % len(OKABE_ITO)]
    return {
        "type": "scatter",
        "x": picture.ravel(),
        "y": output.ravel(),
        "mode": "markers+text",
        "text": [f"{layer}.{head}" if mark else "" for layer, head, mark in zip(layers, heads, marked, strict=True)],
        "textposition": "top center",
        "marker": {
            "size": np.where(marked, 14, 9),
            "color": colours,
            "symbol": np.where(marked, "diamond", "circle"),
            "line": {"color": np.where(marked, CHOSEN, "#8c8c8c"), "width": np.where(marked, 3, 0.5)},
        },
        "customdata": np.stack([layers, heads], axis=1),
        "hovertemplate": "layer %{customdata[0]}, head %{customdata[1]}<br>attention weights moved <b>%{x:.6f}</b><br>"
        "output moved <b>%{y:.6f}</b><extra></extra>",
        "showlegend": False,
    }


def zeroing_bars(keys: Sequence[str], weights: Array, shares: Array) -> go.Figure:
    """The attention weight that each key gets beside its share of value zeroing, both the mean of all rows.

    Args:
        keys: pieces.
        weights: (key,) mean attention weight, sum 1.
        shares: (key,) mean share of how far the rows' outputs turn without the key's value.
    """
    names = [html.escape(label) for label in labels(keys)]
    draft = Draft()
    for name, values, colour, pattern in (
        ("attention weight", weights, WEIGHT, ""),
        ("value zeroing", shares, ZEROED, "/"),
    ):
        draft.add_bar(
            x=np.arange(len(names)),
            y=values,
            name=name,
            customdata=names,
            marker={"color": colour, "pattern": {"shape": pattern}},
            hovertemplate=f"key %{{x}}: %{{customdata}}<br>{name} <b>%{{y:.6f}}</b><extra></extra>",
        )
    shown, texts = ticks(keys)
    layout(draft, 340, "key", "share of the row, mean")
    draft.update_layout(barmode="group", legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0})
    draft.update_xaxes(tickvals=shown, ticktext=texts, showgrid=False, zeroline=False)
    return draft.figure()


def zeroing_table(keys: Sequence[str], weights: Array, shares: Array, changes: Array) -> pd.DataFrame:
    """A key a line: weight, value zeroing, and the change in the translation's log-probability without its value."""
    return pd.DataFrame(
        {
            "position": range(len(keys)),
            "key": labels(keys),
            "attention weight": weights,
            "value zeroing": shares,
            "change in log p, nats": changes,
        }
    )
