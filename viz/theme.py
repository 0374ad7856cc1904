"""One look for every picture: colours that colour-blind people can tell apart, on light and on dark."""

from typing import TYPE_CHECKING

import plotly.graph_objects as go

if TYPE_CHECKING:
    from viz.figure import Draft

OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
"""Okabe & Ito (2008): told apart with every kind of colour vision; heads take them in order."""

QUERY, KEY, VALUE = "#0072B2", "#D55E00", "#009E73"
"""Q, K and V keep these in formulas, matrices and lines of every page."""

ENCODER, DECODER = "#56B4E9", "#E69F00"

WEIGHTS = "viridis"
"""Colour scale of attention weights and probabilities, always with the range 0 to 1 or one that is stated."""

SIGNED = "RdBu_r"
"""Diverging scale for signed numbers, centred on 0: blue below, red above."""

FONT = "Source Sans, Source Sans Pro, system-ui, sans-serif"
GREY, TEXT = "#808495", "#2F2D2B"
"""Of a chart's labels, and of titles and legends; the style sheet makes both darker or lighter, as the theme needs"""
FAINT = "rgba(128, 132, 149, 0.25)"
"""lines that no theme hides"""

_LABELS = {"size": 12, "color": GREY}
_AXIS = {
    "tickfont": _LABELS,
    "gridcolor": FAINT,
    "zerolinecolor": FAINT,
    "automargin": True,
    "ticklabelposition": "outside",
}
_TITLE = {"size": 14, "color": GREY}
LOOK = {
    "layout": {
        "font": {"family": FONT, "size": 13, "color": GREY},
        "paper_bgcolor": "rgba(0, 0, 0, 0)",
        "plot_bgcolor": "rgba(0, 0, 0, 0)",
        "title": {"font": {"size": 16, "weight": "bold", "color": TEXT}, "pad": {"l": 4}, "xanchor": "left", "x": 0},
        "legend": {"title": {"font": _LABELS, "side": "top"}, "font": {"size": 12, "color": TEXT}, "borderwidth": 0},
        "margin": {"pad": 8, "l": 0, "r": 0},
        "hoverlabel": {
            "bgcolor": "#FFFFFF",
            "bordercolor": "rgba(128, 132, 149, 0.3)",
            "font": {"family": FONT, "size": 12, "color": GREY},
        },
        "colorway": OKABE_ITO,
    },
    "xaxis": _AXIS | {"title": {"font": _TITLE, "standoff": 20}, "showgrid": False, "zeroline": False},
    "yaxis": _AXIS | {"title": {"font": _TITLE, "standoff": 24}},
    "coloraxis": {
        "colorbar": {
            "thickness": 16,
            "xpad": 24,
            "len": 0.75,
            "y": 0.5745,
            "outlinewidth": 8,
            "outlinecolor": "rgba(0, 0, 0, 0)",
            "title": {"font": _TITLE},
            "tickfont": _LABELS,
        }
    },
}
"""What a figure has where it does not say otherwise: its layout, each axis and colour axis of it"""
BESIDE_MAPS = {"tickcolor": FAINT}
"""what the axes of heat maps have besides: Plotly gives theirs ticks, and others too where these have a colour"""


class OwnLook(go.Figure):
    """A figure that brings its whole look.

    Streamlit's charts are drawn before their width is known, and once more then. Plotly does nothing the second time,
    nor when the page runs again, if it finds the same figure: a template, as Streamlit's theme is one, is never the
    same to it, nor are arrays without a `datarevision`. Ranges and margins that it works out itself take it part of
    the way again; viz.charts.heads_and_layers.head_map has none. What depends on the theme is in pages/frame/style.css.
    """

    def to_dict(self) -> dict:
        """As Plotly's own, without the template that it gives every figure."""
        figure = super().to_dict()
        figure["layout"].pop("template", None)
        return figure


def layout(draft: "Draft", height: int, x_title: str, y_title: str) -> "Draft":
    """Give a figure the common margins, its height in pixels, and the titles of its axes."""
    return draft.update_layout(
        height=height,
        margin={"l": 60, "r": 20, "t": 40, "b": 50},
        xaxis={"title": {"text": x_title}},
        yaxis={"title": {"text": y_title}},
    )


def flat_bar(title: str) -> dict:
    """A colour bar that lies above the figure: beside it a phone has no room."""
    bar = {
        "thickness": 12,
        "orientation": "h",
        "len": 0.6,
        "title": {"text": title, "side": "top", "font": {"size": 13}},
    }
    return bar | {"y": 1.0, "yanchor": "bottom"}


def symmetric_range(*arrays) -> tuple[float, float]:
    """(-m, m) with m the largest magnitude in `arrays`: one colour range for all of them."""
    largest = max((float(abs(array).max()) for array in arrays if array.size), default=0.0)
    return (-largest or -1.0, largest or 1.0)
