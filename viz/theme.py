"""The common look of all figures: colours for colour-blind readers, on light and dark backgrounds."""

from functools import cache

import numpy as np
import plotly.colors

Array = np.ndarray

OKABE_ITO = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
"""Okabe & Ito (2008), distinguishable with every kind of colour vision; heads take them in this order."""

QUERY, KEY, VALUE = "#0072B2", "#D55E00", "#009E73"
"""Colours of Q, K and V in the formulas, matrices and lines of every page."""

ENCODER, DECODER = "#56B4E9", "#E69F00"
FAINT_DECODER = "rgba(230, 159, 0, 0.45)"

WEIGHTS = "viridis"
"""Colour scale of attention weights and probabilities, from 0 to 1 unless the figure states another range."""

SIGNED = "RdBu_r"
"""Diverging scale for signed numbers, centred on 0: blue below, red above."""

SIGNED_ON_DARK = (
    (112, 190, 255),
    (40, 110, 180),
    (30, 52, 76),
    (34, 34, 34),
    (90, 40, 32),
    (208, 74, 48),
    (255, 156, 124),
)
"""Evenly spaced anchors, 0 to 255, of the same on a dark page: 0 is dark there, too."""

FONT = "Source Sans, Source Sans Pro, system-ui, sans-serif"
GREY, TEXT = "#808495", "#2F2D2B"
"""Text colours: GREY of labels, TEXT of titles and legends. The style sheet adapts both to the theme."""
FAINT = "rgba(128, 132, 149, 0.25)"
"""Grid lines, visible on light and dark."""
GUIDE = "#8C8C8C"
"""Reference lines, marks and outlines, visible on light and dark."""
CHOSEN = OKABE_ITO[5]
"""Frame of the chosen cell, row or head."""

_LABELS = {"size": 12, "color": GREY}
_AXIS = {
    "tickfont": _LABELS,
    "gridcolor": FAINT,
    "zerolinecolor": FAINT,
    "automargin": True,
    "ticklabelposition": "outside",
    # To hide labels that overflow the figure, Plotly would measure each of them; the margins leave room for them.
    "ticklabeloverflow": "allow",
}
_TITLE = {"size": 14, "color": GREY}
LOOK = {
    "layout": {
        "font": {"family": FONT, "size": 13, "color": GREY},
        "paper_bgcolor": "rgba(0, 0, 0, 0)",
        "plot_bgcolor": "rgba(0, 0, 0, 0)",
        "title": {"font": {"size": 16, "weight": "bold", "color": TEXT}, "pad": {"l": 4}, "xanchor": "left", "x": 0},
        "legend": {"title": {"font": _LABELS, "side": "top"}, "font": {"size": 12, "color": TEXT}, "borderwidth": 0},
        "margin": {"l": 84, "r": 20, "t": 40, "b": 67, "pad": 8},
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
"""Defaults of a figure: its layout, and each of its axes and colour axes."""
AXIS_OF_MAPS = {"tickcolor": FAINT}
"""More defaults for the axes of heat maps. Elsewhere a tick colour would make Plotly draw tick marks."""


def flat_bar(title: str) -> dict:
    """A horizontal colour bar above the figure, as a phone has no room beside it."""
    bar = {
        "thickness": 12,
        "orientation": "h",
        "len": 0.6,
        "title": {"text": title, "side": "top", "font": {"size": 13}},
    }
    return bar | {"y": 1.0, "yanchor": "bottom"}


def symmetric_range(*arrays) -> tuple[float, float]:
    """(-m, m) with m the largest magnitude in `arrays`: one colour range for all of them; (-1, 1) if all are 0."""
    largest = max((float(abs(array).max()) for array in arrays if array.size), default=0.0)
    return (-largest or -1.0, largest or 1.0)


def usual_range(*arrays, share: float = 0.99) -> tuple[float, float]:
    """The same with m at this share of all magnitudes, so that few large numbers do not make all others pale."""
    magnitudes = np.concatenate([np.abs(array).ravel() for array in arrays])
    m = float(np.quantile(magnitudes, share)) if magnitudes.size else 0.0
    return (-m, m) if m else symmetric_range(*arrays)


@cache
def colour_scales() -> dict[str, list[list[int]]]:
    """Evenly spaced [red, green, blue] anchors, 0 to 255, of the two colour scales, and of SIGNED on a dark page."""
    return {name: _anchors(name) for name in (WEIGHTS, SIGNED)} | {f"{SIGNED}_on_dark": [*map(list, SIGNED_ON_DARK)]}


def _anchors(scale: str) -> list[list[int]]:
    colours = [colour for _, colour in plotly.colors.get_colorscale(scale)]
    colours, _ = plotly.colors.convert_colors_to_same_type(colours, "tuple")
    return [[round(255 * part) for part in colour] for colour in colours]
