"""Charts of a long text: what each token costs by its position."""

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from viz.figure import LEGEND_ABOVE, figure
from viz.theme import OKABE_ITO

Curve = tuple[Sequence[float], Sequence[float]]
"""middle positions of the parts of a text, and the mean over each part in bits"""
DASHES = ("solid", "dash", "dot", "dashdot")


def bits_chart(curves: Mapping[str, Curve], built_for: int) -> go.Figure:
    """Mean of -log2 p by position, a line each; a vertical line marks the positions that the model was built for.

    Args:
        curves: by name.
        built_for: positions; no line where the text is no longer.
    """
    lines = [
        go.Scatter(
            x=list(positions),
            y=list(bits),
            name=name,
            mode="lines+markers",
            line={"color": colour, "dash": dash},
            marker={"size": 4},
            hovertemplate=f"{name}<br>around position %{{x:.0f}}: %{{y:.2f}} bits<extra></extra>",
            showlegend=len(curves) > 1,
        )
        for (name, (positions, bits)), colour, dash in zip(curves.items(), OKABE_ITO, DASHES, strict=False)
    ]
    drawn = figure(
        lines,
        height=300 + 24 * len(curves),
        margin={"l": 60, "r": 16, "t": 24, "b": 50},
        legend=LEGEND_ABOVE | {"orientation": "v"},
        xaxis={"title": "position in the text"},
        yaxis={"title": "−log₂ p, bits a token"},
    )
    if max(positions[-1] for positions, _ in curves.values()) > built_for:
        drawn.add_vline(x=built_for, line={"dash": "dash", "width": 1}, annotation_text=f"{built_for} positions")
    return drawn
