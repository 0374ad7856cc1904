"""Pictures of the sinusoids (paper, section 3.5) that no form has: waves, pairs as clocks, and their rotations.

An `encoding` is (position, d_model), dimension 2i a sine and 2i+1 the cosine of pair i, as the model adds it.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from model.language import tr
from viz.figure import LEGEND_ABOVE, NO_GRID, curve, figure, heatmap, scatter, text
from viz.heatmap import colours
from viz.latex import latex_decimal
from viz.special.positional_encoding import dimension_name, positions_text
from viz.theme import GUIDE, OKABE_ITO, SIGNED, Array


def wave_chart(encoding: Array, wavelengths: Array, dimensions: Sequence[int]) -> go.Figure:
    """Chosen columns of the table over the position: its numbers as dots, the formula between them as a line."""
    between = np.linspace(0, len(encoding) - 1, 1200)
    traces = []
    for dimension, colour in zip(dimensions, OKABE_ITO, strict=False):
        angle = 2 * math.pi * between / wavelengths[dimension // 2]
        wave = np.cos(angle) if dimension % 2 else np.sin(angle)
        traces += [
            curve(between, wave, "", colour, width=1.5, showlegend=False),
            scatter(
                x=np.arange(len(encoding)),
                y=encoding[:, dimension],
                mode="markers",
                marker={"color": colour, "size": 5},
                name=dimension_name(dimension),
                hover=f"<b>%{{y:.7g}}</b><br>position %{{x}}, dimension {dimension}",
            ),
        ]
    return figure(
        traces,
        height=380,
        showlegend=True,
        legend=LEGEND_ABOVE | {"title": "dimension "},
        xaxis={"title": "position"},
        yaxis={"title": "value in the table"},
    )


def clock_chart(
    rows: Mapping[str, Array], predicted: Mapping[str, Array], pairs: Sequence[int], pair: int, wavelengths: Array
) -> go.Figure:
    """Some pairs as hands of clocks, the cosine to the right and the sine upwards.

    Args:
        rows: (d_model,) by name: two rows of the table, a hand of each clock each.
        predicted: (d_model,) by name: M_k times the first row, drawn as rings.
        pairs: the ones to show, `pair` among them.
        pair: the emphasised one.
        wavelengths: (pair,) of all.
    """
    sines = 2 * np.asarray(pairs)
    centres = 2.5 * np.arange(len(pairs))
    rims, notes = [], []
    for centre, shown in zip(centres, pairs, strict=True):
        line = {"color": GUIDE, "width": 3 if shown == pair else 1}
        rims.append({"type": "circle", "x0": centre - 1, "x1": centre + 1, "y0": -1, "y1": 1, "line": line})
        title = f"<b>pair {shown}</b>" if shown == pair else f"pair {shown}"
        words = f"{title}<br>λ {positions_text(wavelengths[shown])}"
        notes.append(text(words, x=centre, y=-1.1, yanchor="top", font={"size": 12}))
    ring = {"size": 17, "symbol": "circle-open", "color": OKABE_ITO[1], "line": {"width": 3}}
    return figure(
        [
            *(
                _hands(name, row, sines, centres, colour)
                for (name, row), colour in zip(rows.items(), (OKABE_ITO[0], OKABE_ITO[5]), strict=True)
            ),
            *(
                scatter(x=centres + row[sines + 1], y=row[sines], mode="markers", marker=ring, name=name)
                for name, row in predicted.items()
            ),
        ],
        height=250,
        legend=LEGEND_ABOVE,
        margin={"l": 0, "r": 0, "b": 0},
        xaxis={"visible": False, "range": [-1.35, centres[-1] + 1.35]},
        yaxis={"visible": False, "range": [-2, 1.2], "scaleanchor": "x"},
        shapes=rims,
        annotations=notes,
    )


def _hands(name: str, row: Array, sines: Array, centres: Array, colour: str) -> dict:
    """A line from each centre to (cosine, sine), with a dot at its end."""
    sine, cosine = row[sines], row[sines + 1]
    gap = np.full(len(sines), np.nan)
    return scatter(
        x=np.stack([centres, centres + cosine, gap], -1).ravel(),
        y=np.stack([0 * centres, sine, gap], -1).ravel(),
        mode="lines+markers",
        line={"color": colour, "width": 3},
        marker={"size": [0, 9, 0] * len(sines), "opacity": 1},
        customdata=np.repeat(np.stack([sine, cosine, sines // 2], -1), 3, axis=0),
        name=name,
        hover=f"{name}, pair %{{customdata[2]}}<br>sin <b>%{{customdata[0]:.7g}}</b>, "
        "cos <b>%{customdata[1]:.7g}</b>",
    )


def block_map(blocks: Array, pairs: Sequence[int], k: int) -> go.Figure:
    """M_k for some pairs of dimensions: their 2x2 blocks with their numbers; blank elsewhere, where M_k is 0.

    Args:
        blocks: (pair, 2, 2), of `pairs`.
        pairs: the pairs, in this order.
        k: the offset.
    """
    names = [dimension_name(dimension) for pair in pairs for dimension in (2 * pair, 2 * pair + 1)]
    matrix = np.full((len(names), len(names)), np.nan, np.float32)
    for i, block in enumerate(blocks):
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = block
    return figure(
        [
            heatmap(
                z=matrix,
                x=names,
                y=names,
                xgap=1,
                ygap=1,
                hoverongaps=False,
                texttemplate="%{z:.2f}",
                textfont={"size": 10},
                **colours(SIGNED, -1, 1),
                hover=f"<b>%{{z:.7g}}</b><br>M<sub>{k}</sub>, row %{{y}}, column %{{x}}",
            )
        ],
        height=440,
        xaxis={
            "title": f"dimension of PE(pos), pos → pos + {k}<br>(colours: −1 to 1)",
            "type": "category",
            "tickangle": -60,
        },
        yaxis=NO_GRID | {"title": "dimension of PE(pos + k)", "type": "category", "autorange": "reversed"},
    )


def block_equation(block: Array, start: Array, end: Array, pos: int, k: int, pair: int) -> str:
    """LaTeX of one pair's rotation in numbers: its block of M_k times PE(pos), and the table's own PE(pos + k)."""

    def matrix(rows: Array) -> str:
        body = r" \\ ".join(" & ".join(latex_decimal(value, 5) for value in np.atleast_1d(row)) for row in rows)
        return rf"\begin{{pmatrix}} {body} \end{{pmatrix}}"

    names = f"{2 * pair},\\,{2 * pair + 1}"
    pair_name, in_table = tr("pair"), tr("in the table")
    return (
        rf"\underbrace{{{matrix(block)}}}_{{M_{{{k}}},\ \text{{{pair_name} }}{pair}}} "
        rf"\underbrace{{{matrix(start)}}}_{{PE({pos})_{{{names}}}}} = {matrix(block @ start.astype(float))} "
        rf"\qquad \underbrace{{{matrix(end)}}}_{{PE({pos + k})_{{{names}}}\ \text{{{in_table}}}}}"
    )
