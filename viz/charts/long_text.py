"""Charts of a long text: what each token costs by its position."""

from collections.abc import Sequence

import plotly.graph_objects as go

from viz.figure import figure
from viz.theme import OKABE_ITO


def surprise_chart(positions: Sequence[float], bits: Sequence[float], built_for: int) -> go.Figure:
    """Mean of -log2 p by position; a line marks the positions that the model was built for.

    Args:
        positions: middle of each part of the text.
        bits: mean over the part.
        built_for: positions; no line where the text is no longer.
    """
    line = go.Scatter(
        x=list(positions),
        y=list(bits),
        mode="lines+markers",
        line={"color": OKABE_ITO[0]},
        hovertemplate="around position %{x:.0f}: %{y:.2f} bits<extra></extra>",
        showlegend=False,
    )
    drawn = figure(
        [line],
        height=300,
        margin={"l": 60, "r": 16, "t": 24, "b": 50},
        xaxis={"title": "position in the text"},
        yaxis={"title": "−log₂ p, bits a token", "rangemode": "tozero"},
    )
    if positions[-1] > built_for:
        drawn.add_vline(x=built_for, line={"dash": "dash", "width": 1}, annotation_text=f"{built_for} positions")
    return drawn
