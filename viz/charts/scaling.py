"""Pictures of the division by sqrt(d_k) (paper, section 3.2.1), and of what other temperatures do to a translation."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from viz.figure import Draft
from viz.theme import OKABE_ITO, layout

Array = np.ndarray


def products_chart(scores: Array, scaled: Array) -> go.Figure:
    """How often which score occurs, before and after the division, in bins of one width.

    Args:
        scores: (cell,) q k of every cell that the mask allows.
        scaled: (cell,) the same, divided by sqrt(d_k).
    """
    draft = Draft()
    limit = max(float(np.abs(scores).max(initial=0.0)), 0.5) * 1.02
    bins = np.linspace(-limit, limit, 62)
    centres, width = (bins[:-1] + bins[1:]) / 2, bins[1] - bins[0]
    drawn = (("q·k", scores, OKABE_ITO[5], ""), ("q·k / √d_k", scaled, OKABE_ITO[0], "/"))
    for name, values, colour, shape in drawn:
        counts, _ = np.histogram(values, bins)
        draft.add_bar(
            x=centres,
            y=counts / max(len(values), 1),
            width=width,
            name=f"{name}: variance {values.astype(np.float64).var():.3g}",
            customdata=counts,
            marker={"color": colour, "opacity": 0.65, "pattern": {"shape": shape, "solidity": 0.25}},
            hovertemplate=f"{name} within {width / 2:.2g} of %{{x:.3g}}<br><b>%{{customdata}}</b> cells, "
            "%{y:.1%}<extra></extra>",
        )
    layout(draft, 360, "score", "share of the cells")
    draft.update_layout(barmode="overlay", legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0})
    draft.update_yaxes(tickformat=".0%")
    return draft.figure()


def variances_chart(variances: Array, if_independent: Array, d_k: int, head: int) -> go.Figure:
    """The variance of q k in every head of a layer beside d_k.

    Args:
        variances: (head,) measured.
        if_independent: (head,) were the components independent.
        d_k: what footnote 4 of the paper expects of components with mean 0 and variance 1.
        head: the chosen one, drawn with a frame.
    """
    heads, draft = np.arange(len(variances)), Draft()
    draft.add_bar(
        x=heads,
        y=variances,
        name="measured",
        marker={
            "color": [OKABE_ITO[i % len(OKABE_ITO)] for i in heads],
            "line": {"width": [3 if i == head else 0 for i in heads], "color": "#8C8C8C"},
        },
        hovertemplate="head %{x}<br>variance of q·k <b>%{y:.5g}</b><extra></extra>",
    )
    draft.add_scatter(
        x=heads,
        y=if_independent,
        name="were the components independent",
        mode="markers",
        marker={"symbol": "diamond", "size": 10, "color": "#8C8C8C", "line": {"width": 1.5, "color": "#FFFFFF"}},
        hovertemplate="head %{x}<br>were the components independent <b>%{y:.5g}</b><extra></extra>",
    )
    layout(draft, 360, "head", "variance of q·k")
    draft.add_scatter(
        x=[-0.5, len(heads) - 0.5],
        y=[d_k, d_k],
        name=f"d_k = {d_k}",
        mode="lines",
        line={"dash": "dash", "color": "#8C8C8C", "width": 2.5},
    )
    draft.update_xaxes(tickvals=heads, showgrid=False)
    draft.update_layout(legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0})
    return draft.figure()


def runs_chart(taus: Sequence[float], per_token: Array, bits: Array) -> go.Figure:
    """One dot a run: ln probability of a fixed translation, a token, and mean entropy, against temperature.

    Args:
        taus: (tau,), logarithmic axis.
        per_token: (tau,) ln probability, the mean of the tokens.
        bits: (tau,) mean entropy of all attention weights.
    """
    draft = Draft()
    drawn = (
        ("ln probability of the plain translation, mean per token", per_token, OKABE_ITO[0], "circle", "y"),
        ("mean entropy of all attention weights (right axis)", bits, OKABE_ITO[5], "diamond", "y2"),
    )
    for name, values, colour, symbol, axis in drawn:
        draft.add_scatter(
            x=list(taus),
            y=values,
            name=name,
            mode="lines+markers",
            yaxis=axis,
            line={"color": colour, "dash": "solid" if axis == "y" else "dot"},
            marker={"symbol": symbol, "size": 9},
            hovertemplate=f"τ = %{{x:g}}<br>{name}: <b>%{{y:.5f}}</b><extra></extra>",
        )
    layout(draft, 360, "temperature τ (logarithmic)", "ln probability, nats")
    draft.update_xaxes(type="log", tickvals=list(taus), ticktext=[f"{tau:g}" for tau in taus], showgrid=False)
    right = {"overlaying": "y", "side": "right", "title": "entropy, bits", "showgrid": False, "zeroline": False}
    draft.update_layout(
        yaxis2=right | {"rangemode": "tozero"},
        margin={"r": 60, "t": 70},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    )
    return draft.figure()


def runs_table(
    taus: Sequence[float], translations: Sequence[str], totals: Array, all_heads: Array, this_head: Array
) -> pd.DataFrame:
    """One line a run."""
    return pd.DataFrame(
        {
            "τ": [f"{tau:g}" for tau in taus],
            "translation": translations,
            "ln probability of the plain translation": totals,
            "mean entropy, all heads (bits)": all_heads,
            "mean entropy, this head (bits)": this_head,
        }
    )
