"""Axes, colours and amounts of the cost of attention as sentences grow."""

from collections.abc import Mapping, Sequence

import numpy as np

from model.language import Numeral
from viz.theme import OKABE_ITO, Array

ATTENTION = "Q Kᵀ and weights · V"
COLOURS: Mapping[str, str] = {
    ATTENTION: OKABE_ITO[5],
    "projections of Q, K, V and the output": OKABE_ITO[0],
    "feed-forward": OKABE_ITO[2],
    "output over the vocabulary": OKABE_ITO[3],
}
"""Colour of each curve, by what it counts."""
UNITS = ("", "k", "M", "G", "T", "P", "E")


def amount(value: float) -> Numeral:
    """A count in three digits: "512", "2.35 M", "63.1 M"."""
    step = min(int(np.log10(max(value, 1)) // 3), len(UNITS) - 1)
    if f"{value / 1000**step:.3g}" == "1e+03" and step < len(UNITS) - 1:
        step += 1
    return Numeral(f"{value / 1000**step:.3g} {UNITS[step]}".strip())


def lengths_to_plot(*marked: float) -> Array:
    """Whole lengths from 1 to past the largest of `marked`, evenly spaced on a logarithmic axis."""
    return np.unique(np.geomspace(1, 4 * max(marked), 120).round().astype(int))


def log_axes(lengths: Array) -> dict:
    """Layout with logarithmic axes: lengths from 1, and counts."""
    return {
        "xaxis": {"type": "log", "range": [0, np.log10(lengths[-1])], "dtick": 1, "tickformat": ","},
        "yaxis": {"type": "log", "dtick": 1, "exponentformat": "SI", "zeroline": False},
    }


def percentages(values: Sequence[float]) -> list[Numeral]:
    """Each value's share of their sum: "41.2%"."""
    return [Numeral(f"{100 * value / sum(values):.1f}%") for value in values]
