"""Curves of positional encoding (paper, section 3.5): wavelengths, waves, similarity over distance, clock hands.

An `encoding` is (position, d_model), dimension 2i a sine and 2i+1 the cosine of pair i, as the model adds it.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from viz.charts.positional_encoding import dimension_name, length
from viz.figure import Draft
from viz.theme import OKABE_ITO, SIGNED, layout

Array = np.ndarray

LINE = "#8C8C8C"
"""Guides and reference lines: seen on light and on dark."""
BAND = "rgba(140,140,140,0.4)"
LEGEND = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}


def wavelength_chart(measured: Array, formula: Array, max_len: int, chosen: Sequence[int]) -> go.Figure:
    """Positions a full turn takes, for each pair of dimensions; the `chosen` dimensions' pairs in their colours."""
    pairs = np.arange(len(formula))
    draft = Draft()
    draft.add_scatter(
        x=pairs, y=formula, mode="lines", line={"color": LINE, "width": 1.5}, name="formula", hoverinfo="skip"
    )
    hover = "pair %{x}: <b>%{y:,.7g}</b> positions<extra></extra>"
    dots = {"mode": "markers", "hovertemplate": hover}
    draft.add_scatter(x=pairs, y=measured, marker={"size": 5, "color": LINE}, name="the model's table", **dots)
    for dimension, colour in zip(chosen, OKABE_ITO, strict=False):
        pair = dimension // 2
        marker = {"size": 12, "color": colour, "line": {"color": "white", "width": 1}}
        draft.add_scatter(x=[pair], y=measured[[pair]], marker=marker, showlegend=False, **dots)
    for value, text in (
        (2 * math.pi, "2π"),
        (2 * math.pi * 10_000, "10000 · 2π"),
        (max_len, f"length of the table: {max_len}"),
    ):
        draft.add_hline(value, line={"color": LINE, "width": 1, "dash": "dot"})
        # Plotly places a shape on a log axis by its value, but an annotation by the value's logarithm.
        place = {"x": 0.01, "xref": "x domain", "xanchor": "left", "y": math.log10(value), "yanchor": "bottom"}
        draft.add_annotation(text=text, showarrow=False, font_size=12, **place)
    layout(draft, 380, "pair i (dimensions 2i and 2i+1)", "wavelength, positions (log)")
    draft.update_yaxes(type="log", range=[0.6, 5.1], dtick=1, exponentformat="none", tickformat=",", zeroline=False)
    draft.update_layout(legend=LEGEND)
    return draft.figure()


def wave_chart(encoding: Array, wavelengths: Array, dimensions: Sequence[int]) -> go.Figure:
    """Chosen columns of the table over the position: dots are its numbers, the line is the formula between."""
    draft = Draft()
    between = np.linspace(0, len(encoding) - 1, 1200)
    for dimension, colour in zip(dimensions, OKABE_ITO, strict=False):
        angle = 2 * math.pi * between / wavelengths[dimension // 2]
        wave = np.cos(angle) if dimension % 2 else np.sin(angle)
        line = {"color": colour, "width": 1.5}
        draft.add_scatter(x=between, y=wave, mode="lines", line=line, hoverinfo="skip", showlegend=False)
        draft.add_scatter(
            x=np.arange(len(encoding)),
            y=encoding[:, dimension],
            mode="markers",
            marker={"color": colour, "size": 5},
            name=dimension_name(dimension),
            hovertemplate=f"<b>%{{y:.7g}}</b><br>position %{{x}}, dimension {dimension}<extra></extra>",
        )
    layout(draft, 380, "position", "value in the table")
    draft.update_xaxes(zeroline=False)
    draft.update_layout(showlegend=True, legend=LEGEND | {"title": "dimension "})
    return draft.figure()


def similarity_curve(similarities: Array, extremes: tuple[Array, Array], position: int, name: str) -> go.Figure:
    """One row of the matrix over the offset k, in the band of all positions' values at that distance."""
    row = similarities[position]
    offsets = np.arange(len(row)) - position
    lowest, highest = (band[abs(offsets)] for band in extremes)
    draft = Draft()
    # The band's edges are drawn broad, so that it shows around the curve where lowest and highest are one.
    band = {"mode": "lines", "line": {"width": 5, "color": BAND}, "hoverinfo": "skip"}
    draft.add_scatter(x=offsets, y=highest, showlegend=False, **band)
    name_of_band = "lowest to highest of all positions"
    draft.add_scatter(x=offsets, y=lowest, fill="tonexty", fillcolor=BAND, name=name_of_band, **band)
    draft.add_scatter(
        x=offsets,
        y=row,
        mode="lines",
        line={"color": OKABE_ITO[0], "width": 1.5},
        name=f"position {position}",
        hovertemplate=f"<b>%{{y:.7g}}</b><br>positions {position} and {position} %{{x:+d}}<extra></extra>",
    )
    layout(draft, 440, "offset k", name)
    draft.update_layout(legend=LEGEND)
    return draft.figure()


def clocks(
    rows: Mapping[str, Array], predicted: Mapping[str, Array], pairs: Sequence[int], pair: int, wavelengths: Array
) -> go.Figure:
    """Some pairs as hands of clocks, the cosine to the right and the sine upwards.

    Args:
        rows: (d_model,) by name: the two rows of the table that give each clock its hands.
        predicted: (d_model,) by name: what M_k makes of the first row, drawn as rings.
        pairs: the ones to draw, `pair` among them.
        pair: the one that is emphasised.
        wavelengths: (pair,) of all.
    """
    sines = 2 * np.asarray(pairs)
    centres = 2.5 * np.arange(len(pairs))
    draft = Draft()
    for centre, shown in zip(centres, pairs, strict=True):
        rim = {"color": LINE, "width": 3 if shown == pair else 1}
        draft.add_shape(type="circle", x0=centre - 1, x1=centre + 1, y0=-1, y1=1, line=rim)
        title = f"<b>pair {shown}</b>" if shown == pair else f"pair {shown}"
        text = f"{title}<br>λ {length(wavelengths[shown])}"
        draft.add_annotation(x=centre, y=-1.1, text=text, showarrow=False, yanchor="top", font_size=12)
    for (name, row), colour in zip(rows.items(), (OKABE_ITO[0], OKABE_ITO[5]), strict=True):
        draft.add_trace(_hands(name, row, sines, centres, colour))
    ring = {"size": 17, "symbol": "circle-open", "color": OKABE_ITO[1], "line": {"width": 3}}
    for name, row in predicted.items():
        x, y = centres + row[sines + 1], row[sines]
        draft.add_scatter(x=x, y=y, mode="markers", marker=ring, name=name, hoverinfo="skip")
    layout(draft, 250, "", "")
    draft.update_xaxes(visible=False, range=[-1.35, centres[-1] + 1.35])
    draft.update_yaxes(visible=False, range=[-2, 1.2], scaleanchor="x")
    draft.update_layout(legend=LEGEND, margin={"l": 0, "r": 0, "b": 0})
    return draft.figure()


def spread(n_pairs: int, count: int = 6) -> list[int]:
    """At most `count` pairs from the first to the last."""
    return sorted({round(at) for at in np.linspace(0, n_pairs - 1, min(count, n_pairs))})


def block_map(blocks: Array, pairs: Sequence[int], k: int) -> go.Figure:
    """M_k for some pairs of dimensions: their 2x2 blocks with their numbers; elsewhere M_k is 0, and blank.

    Args:
        blocks: (pair, 2, 2), of `pairs`.
        pairs: whose blocks they are, in this order.
        k: the offset.
    """
    names = [dimension_name(dimension) for pair in pairs for dimension in (2 * pair, 2 * pair + 1)]
    matrix = np.full((len(names), len(names)), np.nan, np.float32)
    for i, block in enumerate(blocks):
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = block
    heat = {
        "type": "heatmap",
        "z": matrix,
        "x": names,
        "y": names,
        "xgap": 1,
        "ygap": 1,
        "hoverongaps": False,
        "texttemplate": "%{z:.2f}",
        "textfont": {"size": 10},
        "colorscale": SIGNED,
        "zmin": -1,
        "zmax": 1,
        "showscale": False,
        "hovertemplate": f"<b>%{{z:.7g}}</b><br>M<sub>{k}</sub>, row %{{y}}, column %{{x}}<extra></extra>",
    }
    draft = layout(
        Draft().add_trace(heat),
        440,
        f"dimension of PE(pos), pos → pos + {k} (colours: −1 to 1)",
        "dimension of PE(pos + k)",
    )
    draft.update_xaxes(type="category", showgrid=False, zeroline=False, tickangle=-60)
    return draft.update_yaxes(type="category", autorange="reversed", showgrid=False, zeroline=False).figure()


def block_table(pairs: Sequence[int], wavelengths: Array, k: int, errors: Array) -> pd.DataFrame:
    """One line a pair: how far M_k turns it, and the largest error of PE(pos + k) = M_k PE(pos) over all positions.

    Args:
        pairs: the pairs.
        wavelengths: (pair,) of all pairs.
        k: the offset.
        errors: (pair,) of all pairs.
    """
    turns = k / wavelengths[list(pairs)]
    return pd.DataFrame(
        {
            "pair": list(pairs),
            "wavelength": [length(wavelengths[pair]) for pair in pairs],
            "turned by": [f"{360 * turn:,.4g}°" for turn in turns],
            "largest error": [f"{errors[pair]:.1e}" for pair in pairs],
        }
    )


def _hands(name: str, row: Array, sines: Array, centres: Array, colour: str) -> dict:
    """A line from each centre to (cosine, sine), with a dot at its tip."""
    sine, cosine = row[sines], row[sines + 1]
    gap = np.full(len(sines), np.nan)
    return {
        "type": "scatter",
        "x": np.stack([centres, centres + cosine, gap], -1).ravel(),
        "y": np.stack([0 * centres, sine, gap], -1).ravel(),
        "mode": "lines+markers",
        "line": {"color": colour, "width": 3},
        "marker": {"size": [0, 9, 0] * len(sines), "opacity": 1},
        "customdata": np.repeat(np.stack([sine, cosine, sines // 2], -1), 3, axis=0),
        "name": name,
        "hovertemplate": f"{name}, pair %{{customdata[2]}}<br>sin <b>%{{customdata[0]:.7g}}</b>, "
        "cos <b>%{customdata[1]:.7g}</b><extra></extra>",
    }


def block_equation(block: Array, start: Array, end: Array, pos: int, k: int, pair: int) -> str:
    """LaTeX of one pair's turn in numbers: block of M_k times PE(pos), beside what the table has at pos + k."""

    def matrix(rows: Array) -> str:
        body = r" \\ ".join(" & ".join(f"{value:.5f}" for value in np.atleast_1d(row)) for row in rows)
        return rf"\begin{{pmatrix}} {body} \end{{pmatrix}}"

    names = f"{2 * pair},\\,{2 * pair + 1}"
    return (
        rf"\underbrace{{{matrix(block)}}}_{{M_{{{k}}},\ \text{{pair }}{pair}}} "
        rf"\underbrace{{{matrix(start)}}}_{{PE({pos})_{{{names}}}}} = {matrix(block @ start.astype(float))} "
        rf"\qquad \underbrace{{{matrix(end)}}}_{{PE({pos + k})_{{{names}}}\ \text{{in the table}}}}"
    )
