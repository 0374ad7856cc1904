"""What leaks where the causal mask is lifted: probabilities before and after, and weights on the future."""

import html
from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from viz.draft import Draft
from viz.theme import OKABE_ITO, WEIGHTS, layout
from viz.tokens import labels, ticks

Array = np.ndarray


def probability_bars(
    next_tokens: Sequence[str],
    before: Array,
    after: Array,
    said: tuple[str, str] = ("causal mask on", "causal mask lifted"),
) -> go.Figure:
    """The probability of the right next token at each position: before, after, difference.

    Args:
        next_tokens: the right token of each position.
        before: (position,), 0 to 1.
        after: (position,), 0 to 1, after the change.
        said: what `before` and `after` are.
    """
    draft = Draft()
    names = [html.escape(label) for label in labels(next_tokens)]
    for name, values, colour in (
        (f"before: {said[0]}", before, OKABE_ITO[0]),
        (f"after: {said[1]}", after, OKABE_ITO[1]),
        ("difference: after − before", after - before, OKABE_ITO[3]),
    ):
        draft.add_bar(
            x=np.arange(len(names)),
            y=values,
            name=name,
            customdata=names,
            marker_color=colour,
            hovertemplate=f"position %{{x}}, right token %{{customdata}}<br>{name}: <b>%{{y:.6f}}</b><extra></extra>",
        )
    shown, texts = ticks(next_tokens)
    layout(draft, 360, "right next token", "its probability")
    draft.update_layout(barmode="group", legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0})
    draft.update_xaxes(tickvals=shown, ticktext=texts, showgrid=False, zeroline=False)
    draft.update_yaxes(range=[-1 if (after < before).any() else 0, 1], zeroline=True)
    return draft.figure()


def leak_map(mass: Array, rows: Sequence[str]) -> go.Figure:
    """Weight on the future, a row a head, a column a position; 0 to 1.

    Args:
        mass: (head, position).
        rows: names of the decoder rows, plain text.
    """
    names = [html.escape(row) for row in rows]
    heads = [f"head {head}" for head in range(len(mass))]
    draft = Draft().add_heatmap(
        z=np.ascontiguousarray(mass, dtype=np.float32),
        x=names,
        y=heads,
        colorscale=WEIGHTS,
        zmin=0,
        zmax=1,
        colorbar={"title": {"text": "weight on<br>the future,<br>0 to 1"}, "thickness": 12},
        hovertemplate="%{y}, row %{x}<br>weight on later positions <b>%{z:.7g}</b><extra></extra>",
    )
    shown, _ = ticks(names)
    layout(draft, 290 + 22 * len(heads), "decoder row (query)", "")
    draft.update_xaxes(
        tickmode="array", tickvals=shown, ticktext=[names[i] for i in shown], showgrid=False, tickangle=-60
    )
    draft.update_yaxes(autorange="reversed", showgrid=False)
    return draft.figure()


def leak_table(rows: Sequence[str], before: Array, after: Array, moved: Array, future: Array) -> pd.DataFrame:
    """One line a position.

    Args:
        rows: names of the decoder rows.
        before: (position,) probability of the right next token with the mask.
        after: (position,) without it.
        moved: (position,) share of the whole distribution that moved.
        future: (position,) attention weight on later positions, the mean of the layer's heads.
    """
    return pd.DataFrame(
        {
            "row": rows,
            "before": before,
            "after": after,
            "difference": after - before,
            "distribution moved": moved,
            "weight on the future": future,
        }
    )
