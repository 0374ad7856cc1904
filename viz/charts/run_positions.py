"""Figures of positions inside attention: RoPE's angles, rotated vectors, and biases by distance."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from viz.bars import position_chart
from viz.charts.positional_encoding import MOST_TICKS, VALUE, positions_text
from viz.figure import LEGEND_ABOVE, NO_GRID, curve, figure, heatmap, hline, scatter, text
from viz.heatmap import signed_axis
from viz.theme import GUIDE, OKABE_ITO
from viz.tokens import axis_ticks, numbered

Array = np.ndarray


def angle_map(values: Array, wavelengths: Array, name: str, sentence_length: int) -> go.Figure:
    """Cosine or sine of the angle by which each pair is rotated, a row for each position.

    Args:
        values: (position, pair).
        wavelengths: (pair,), in positions.
        name: cos or sin.
        sentence_length: number of rows that the text uses.
    """
    pairs = [f"pair {i}, wavelength {positions_text(each)}" for i, each in enumerate(wavelengths)]
    limit = max(1.0, float(np.abs(values).max()))
    lines, notes = [], []
    if sentence_length < len(values):
        lines = [hline(sentence_length - 0.5, color="black", width=1.5, dash="dash")]
        look = {"bgcolor": "rgba(255,255,255,0.85)", "font": {"color": "#222", "size": 12}}
        place = {"x": 1, "xref": "x domain", "xanchor": "right", "y": sentence_length - 0.5, "yanchor": "top"}
        notes = [text(f"↑ your text: positions 0 to {sentence_length - 1}", **place, **look)]
    return figure(
        [
            heatmap(
                z=np.ascontiguousarray(values, np.float32),
                x=pairs,
                coloraxis="coloraxis",
                hover=f"{VALUE}{name} at position %{{y}}<br>%{{x}}",
            )
        ],
        height=530,
        coloraxis=signed_axis((-limit, limit)),
        xaxis=axis_ticks([str(i) for i in range(len(pairs))], MOST_TICKS) | {"title": "pair i of dimensions"},
        yaxis=NO_GRID | {"title": "position", "autorange": "reversed"},
        shapes=lines,
        annotations=notes,
    )


def pair_wavelengths(wavelengths: Array, sentence_length: int) -> go.Figure:
    """(pair,): the wavelength of each pair on a logarithmic axis, and the length of the text."""
    levels = {"length of your text": sentence_length}
    pairs, turning = np.arange(len(wavelengths)), np.isfinite(wavelengths)
    return figure(
        [
            scatter(
                x=pairs[turning],
                y=wavelengths[turning],
                mode="markers",
                marker={"size": 8, "color": OKABE_ITO[0]},
                name="measured in this run",
                hover="pair %{x}: <b>%{y:,.7g}</b> positions",
            ),
            *(
                curve([0, len(pairs) - 1], [length] * 2, f"{name}: {length}", GUIDE, dash="dot")
                for name, length in levels.items()
            ),
        ],
        height=380,
        legend=LEGEND_ABOVE,
        showlegend=True,
        xaxis={"title": "pair i of dimensions"},
        yaxis={"title": "wavelength, positions (log)", "type": "log", "tickformat": ",", "zeroline": False},
    )


def bias_by_offset(offsets: Array, biases: Array, head: int) -> go.Figure:
    """The bias that each head adds at each offset; the line of the chosen head is wide.

    Args:
        offsets: (offset,), key minus query.
        biases: (head, offset), measured.
        head: the chosen one.
    """
    colours = len(OKABE_ITO)
    return figure(
        [
            curve(
                offsets,
                bias,
                str(number),
                OKABE_ITO[number % colours],
                width=5 if number == head else 1.5,
                dash=("solid", "dash")[number // colours % 2],
                hover=f"head {number}, offset %{{x:+d}}: <b>%{{y:.7g}}</b>",
            )
            for number, bias in enumerate(biases)
        ],
        height=420,
        showlegend=True,
        legend={"title": "head"},
        xaxis={"title": "offset, key minus query"},
        yaxis={"title": "added to the scaled score", "zeroline": False},
    )


def order_bars(tokens: Sequence[str], change: Array) -> go.Figure:
    """(position,): how much the logits in each token's row change when the words change places."""
    series = {"change": (change, {"color": OKABE_ITO[0]})}
    titles = ("token, in its own order", "largest change of a logit")
    return position_chart(numbered(tokens), series, 320, titles, number=".3g", yaxis={"rangemode": "tozero"})
