"""The model card's one figure: what attention costs as sentences grow, beside all that grows in step with them."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from viz.figure import Draft
from viz.theme import OKABE_ITO, layout

Array = np.ndarray

LINE = "#8C8C8C"
"""Guides: seen on light and on dark."""
ATTENTION = "Q Kᵀ and pattern · V"
COLOURS: Mapping[str, str] = {
    ATTENTION: OKABE_ITO[5],
    "projections W_Q, W_K, W_V, W_O": OKABE_ITO[0],
    "feed-forward": OKABE_ITO[2],
    "output over the vocabulary": OKABE_ITO[3],
}
"""of the curves, by what they count"""
UNITS = ("", "k", "M", "G", "T", "P", "E")


def amount(value: float) -> str:
    """A count in three digits: "512", "2.35 M", "63.1 M"."""
    step = min(int(np.log10(max(value, 1)) // 3), len(UNITS) - 1)
    if f"{value / 1000**step:.3g}" == "1e+03" and step < len(UNITS) - 1:
        step += 1
    return f"{value / 1000**step:.3g} {UNITS[step]}".strip()


def lengths_to_draw(*marked: float) -> Array:
    """Whole lengths from 1 to past the largest of `marked`, evenly spread on a logarithmic axis."""
    return np.unique(np.geomspace(1, 4 * max(marked), 120).round().astype(int))


def work_chart(lengths: Array, work: Mapping[str, Array], sentence: int, longest: int, even: float) -> go.Figure:
    """Multiply-adds over the length of the sentence, both axes logarithmic.

    Args:
        lengths: tokens, of source and target alike.
        work: (length,) by name, in the order and with the names of COLOURS.
        sentence: the current source's tokens.
        longest: positions that the model has.
        even: where attention has caught up with projections and feed-forward together.
    """
    draft = Draft()
    for (name, colour), dash in zip(COLOURS.items(), ("solid", "dash", "dot", "dashdot"), strict=True):
        draft.add_scatter(
            x=lengths,
            # Plotly has no 64-bit whole numbers; a float holds these exactly.
            y=np.asarray(work[name], dtype=float),
            mode="lines",
            line={"color": colour, "width": 3 if name == ATTENTION else 2, "dash": dash},
            name=name,
            hovertemplate=f"<b>%{{y:,.0f}}</b><br>{name}<br>at %{{x}} tokens<extra></extra>",
        )
    marks = [(sentence, f"your sentence: {sentence}"), (longest, f"longest: {longest:,}")]
    marks += [(even, f"attention has<br>caught up: {even:,.0f}")]
    for row, (at, text) in enumerate(sorted(marks)):
        draft.add_vline(at, line={"color": LINE, "width": 1, "dash": "dot"})
        # A shape stands on a log axis by its value, an annotation by the value's logarithm.
        side = "right" if lengths[-1] ** 0.5 < at < max(marks)[0] else "left"
        place = {"x": np.log10(at), "xanchor": side, "align": side, "y": 0.22 - 0.11 * row, "yref": "y domain"}
        draft.add_annotation(text=text, showarrow=False, font_size=12, **place)
    layout(draft, 420, "tokens n, source and target alike (log)", "multiply-adds in one pass (log)")
    draft.update_xaxes(type="log", range=[0, np.log10(lengths[-1])], dtick=1, tickformat=",", zeroline=False)
    draft.update_yaxes(type="log", dtick=1, exponentformat="SI", zeroline=False)
    draft.update_layout(legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0})
    return draft.figure()


def shares(values: Sequence[float]) -> list[str]:
    """Each value's part of their sum: "41.2 %"."""
    return [f"{100 * value / sum(values):.1f} %" for value in values]
