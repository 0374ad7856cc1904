"""Figure of the model card: the cost of attention as sentences grow, beside everything that grows linearly."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from viz.figure import LEGEND_ABOVE, curve, figure, text, vline
from viz.theme import OKABE_ITO

Array = np.ndarray

ATTENTION = "Q Kᵀ and weights · V"
COLOURS: Mapping[str, str] = {
    ATTENTION: OKABE_ITO[5],
    "projections W_Q, W_K, W_V, W_O": OKABE_ITO[0],
    "feed-forward": OKABE_ITO[2],
    "output over the vocabulary": OKABE_ITO[3],
}
"""Colour of each curve, by what it counts."""
UNITS = ("", "k", "M", "G", "T", "P", "E")


def amount(value: float) -> str:
    """A count in three digits: "512", "2.35 M", "63.1 M"."""
    step = min(int(np.log10(max(value, 1)) // 3), len(UNITS) - 1)
    if f"{value / 1000**step:.3g}" == "1e+03" and step < len(UNITS) - 1:
        step += 1
    return f"{value / 1000**step:.3g} {UNITS[step]}".strip()


def lengths_to_plot(*marked: float) -> Array:
    """Whole lengths from 1 to past the largest of `marked`, evenly spaced on a logarithmic axis."""
    return np.unique(np.geomspace(1, 4 * max(marked), 120).round().astype(int))


def work_chart(lengths: Array, work: Mapping[str, Array], sentence: int, longest: int, even: float) -> go.Figure:
    """Multiply-adds over the sentence length, both axes logarithmic.

    Args:
        lengths: tokens of source and of target.
        work: (length,) by name, in the order of COLOURS.
        sentence: the current source's tokens.
        longest: positions that the model has.
        even: the length at which attention costs as much as projections and feed-forward together.
    """
    curves = [
        curve(
            lengths,
            np.asarray(work[name], dtype=float),  # Plotly has no 64-bit integers; a float holds these exactly.
            name,
            colour,
            dash=dash,
            width=3 if name == ATTENTION else 2,
            hover=f"<b>%{{y:,.0f}}</b><br>{name}<br>at %{{x}} tokens",
        )
        for (name, colour), dash in zip(COLOURS.items(), ("solid", "dash", "dot", "dashdot"), strict=True)
    ]
    marks = [(sentence, f"your sentence: {sentence}"), (longest, f"longest: {longest:,}")]
    marks = sorted([*marks, (even, f"attention costs<br>as much: {even:,.0f}")])
    notes = []
    for row, (at, words) in enumerate(marks):
        side = "right" if lengths[-1] ** 0.5 < at < marks[-1][0] else "left"
        place = {"x": np.log10(at), "xanchor": side, "align": side, "y": 0.22 - 0.11 * row, "yref": "y domain"}
        notes.append(text(words, font={"size": 12}, **place))
    return figure(
        curves,
        log_axes(lengths),
        height=420,
        legend=LEGEND_ABOVE,
        xaxis={"title": "tokens n, of source and of target (log)"},
        yaxis={"title": "multiply-adds in one pass (log)"},
        shapes=[vline(at) for at, _ in marks],
        annotations=notes,
    )


def log_axes(lengths: Array) -> dict:
    """Layout with logarithmic axes: lengths from 1, and counts."""
    return {
        "xaxis": {"type": "log", "range": [0, np.log10(lengths[-1])], "dtick": 1, "tickformat": ","},
        "yaxis": {"type": "log", "dtick": 1, "exponentformat": "SI", "zeroline": False},
    }


def percentages(values: Sequence[float]) -> list[str]:
    """Each value's share of their sum: "41.2 %"."""
    return [f"{100 * value / sum(values):.1f} %" for value in values]
