"""Figures of Scaling (paper, section 3.2.1): the division by sqrt(d_k), and runs at other temperatures."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from viz.figure import LEGEND_ABOVE, bar, curve, figure, scatter
from viz.theme import GUIDE, OKABE_ITO

Array = np.ndarray


def score_histogram(scores: Array, scaled: Array) -> go.Figure:
    """How often each score occurs, before and after the division, in the same bins.

    Args:
        scores: (cell,) q·k of every unmasked cell.
        scaled: (cell,) the same, divided by sqrt(d_k).
    """
    limit = max(float(np.abs(scores).max(initial=0.0)), 0.5) * 1.02
    bins = np.linspace(-limit, limit, 62)
    centres, width = (bins[:-1] + bins[1:]) / 2, bins[1] - bins[0]
    traces = []
    for name, values, colour, shape in (("q·k", scores, OKABE_ITO[5], ""), ("q·k / √d_k", scaled, OKABE_ITO[0], "/")):
        counts, _ = np.histogram(values, bins)
        traces.append(
            bar(
                x=centres,
                y=counts / max(len(values), 1),
                width=width,
                name=f"{name}: variance {values.astype(np.float64).var():.3g}",
                customdata=counts,
                marker={"color": colour, "opacity": 0.65, "pattern": {"shape": shape, "solidity": 0.25}},
                hover=f"{name} within {width / 2:.2g} of %{{x:.3g}}<br><b>%{{customdata}}</b> cells, %{{y:.1%}}",
            )
        )
    return figure(
        traces,
        height=360,
        barmode="overlay",
        legend=LEGEND_ABOVE,
        xaxis={"title": "score"},
        yaxis={"title": "share of the cells", "tickformat": ".0%"},
    )


def variances_chart(variances: Array, if_independent: Array, d_k: int, head: int) -> go.Figure:
    """The variance of q·k in every head of a layer, compared to d_k.

    Args:
        variances: (head,) measured.
        if_independent: (head,) expected if the components were independent.
        d_k: what footnote 4 of the paper expects of components with mean 0 and variance 1.
        head: the chosen one, framed.
    """
    heads = np.arange(len(variances))
    return figure(
        [
            bar(
                x=heads,
                y=variances,
                name="measured",
                marker={
                    "color": [OKABE_ITO[i % len(OKABE_ITO)] for i in heads],
                    "line": {"width": [3 if i == head else 0 for i in heads], "color": GUIDE},
                },
                hover="head %{x}<br>variance of q·k <b>%{y:.5g}</b>",
            ),
            scatter(
                x=heads,
                y=if_independent,
                name="if the components were independent",
                mode="markers",
                marker={"symbol": "diamond", "size": 10, "color": GUIDE, "line": {"width": 1.5, "color": "#FFFFFF"}},
                hover="head %{x}<br>if the components were independent <b>%{y:.5g}</b>",
            ),
            curve([-0.5, len(heads) - 0.5], [d_k, d_k], f"d_k = {d_k}", GUIDE, dash="dash", width=2.5),
        ],
        height=360,
        legend=LEGEND_ABOVE,
        xaxis={"title": "head", "tickvals": heads},
        yaxis={"title": "variance of q·k"},
    )


def runs_chart(taus: Sequence[float], per_token: Array, bits: Array) -> go.Figure:
    """The log-probability of a fixed text, and the mean entropy of attention, one run for each temperature.

    Args:
        taus: (tau,), on a logarithmic axis.
        per_token: (tau,) log-probability in nats, the mean of the tokens.
        bits: (tau,) mean entropy of all attention weights.
    """
    series = (
        ("ln probability of the plain output, mean per token", per_token, OKABE_ITO[0], "circle", "solid", "y"),
        ("mean entropy of all attention weights (right axis)", bits, OKABE_ITO[5], "diamond", "dot", "y2"),
    )
    return figure(
        [
            curve(
                list(taus),
                values,
                name,
                colour,
                dash=dash,
                symbol=symbol,
                yaxis=axis,
                hover=f"τ = %{{x:g}}<br>{name}: <b>%{{y:.5f}}</b>",
            )
            for name, values, colour, symbol, dash, axis in series
        ],
        height=360,
        legend=LEGEND_ABOVE,
        margin={"r": 60, "t": 70},
        xaxis={
            "title": "temperature τ (logarithmic)",
            "type": "log",
            "tickvals": list(taus),
            "ticktext": [f"{tau:g}" for tau in taus],
        },
        yaxis={"title": "ln probability (nats)"},
        yaxis2={
            "overlaying": "y",
            "side": "right",
            "title": "entropy (bits)",
            "showgrid": False,
            "zeroline": False,
            "rangemode": "tozero",
        },
    )


def runs_table(
    taus: Sequence[float], outputs: Sequence[str], totals: Array, all_heads: Array, this_head: Array
) -> pd.DataFrame:
    """One line for each run; `totals` in nats, entropies in bits."""
    return pd.DataFrame(
        {
            "τ": [f"{tau:g}" for tau in taus],
            "output": outputs,
            "ln probability of the plain output": totals,
            "mean entropy, all heads (bits)": all_heads,
            "mean entropy, this head (bits)": this_head,
        }
    )
