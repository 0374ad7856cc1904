"""Figures of Scaling (paper, section 3.2.1): the division by sqrt(d_k), and runs at other temperatures."""

from collections.abc import Sequence

import plotly.graph_objects as go

from viz.figure import LEGEND_ABOVE, curve, figure
from viz.theme import OKABE_ITO, Array


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
