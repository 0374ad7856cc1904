"""One look for every picture: colours that colour-blind people can tell apart, on light and on dark."""

import plotly.graph_objects as go

from viz.draft import Draft

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


COMMON = {
    "font": {"family": FONT, "size": 13},
    "paper_bgcolor": "rgba(0,0,0,0)",
    "plot_bgcolor": "rgba(0,0,0,0)",
}


class OwnLook(go.Figure):
    """A figure that brings its whole look, for pictures that are drawn again at every move.

    Streamlit's charts are drawn before their width is known, and once more then; Plotly does nothing the second time if
    it finds the same figure. A template, as Streamlit's theme is one, is never the same to it, nor are arrays without
    a `datarevision`, nor an axis that was turned round. What depends on the theme is in pages/components/style.css.
    """

    def to_dict(self) -> dict:
        """As Plotly's own, without the template that it gives every figure."""
        figure = super().to_dict()
        figure["layout"].pop("template", None)
        return figure


GREY = "#808495"
"""Streamlit's for a chart's text; the style sheet makes it darker or lighter, as the theme needs"""
OWN = COMMON | {
    "font": COMMON["font"] | {"color": GREY},
    "hoverlabel": {
        "bgcolor": "#FFFFFF",
        "bordercolor": "rgba(128, 132, 149, 0.3)",
        "font": {"family": FONT, "size": 12, "color": GREY},
    },
}
"""layout of an OwnLook: what Streamlit's theme would say"""


def own_axis(title: str, count: int, standoff: int, size: int, downwards: bool = False) -> dict:
    """An axis of `count` cells in an OwnLook; title's distance and the labels' size in pixels."""
    ends = [-0.5, count - 0.5]
    return {
        "title": {"text": title, "font": {"size": 14}, "standoff": standoff},
        "tickfont": {"size": size},
        "ticks": "outside",
        "tickcolor": "rgba(128, 132, 149, 0.25)",
        "showgrid": False,
        "zeroline": False,
        "range": ends[::-1] if downwards else ends,
    }


def layout(draft: Draft, height: int, x_title: str, y_title: str) -> Draft:
    """Give a figure the common margins, font and axis titles; backgrounds stay transparent."""
    return draft.update_layout(
        COMMON,
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
