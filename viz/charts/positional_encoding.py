"""Heat maps of the positional encoding (paper, section 3.5): the table, its sum with the embedding, similarities.

An `encoding` is (position, d_model), dimension 2i a sine and 2i+1 the cosine of pair i, as the model adds it.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import plotly.graph_objects as go

from viz.figure import NO_GRID, TITLE_LEFT, escape, figure, grid, heatmap, hline, merge, panels, text
from viz.heatmap import signed_axis
from viz.theme import symmetric_range
from viz.tokens import axis_ticks, numbered

Array = np.ndarray

VALUE = "<b>%{z:.7g}</b><br>"
"""Hover text of a number: all the digits of single precision."""
MOST_TICKS = 16
GAP = 40
"""Pixels between maps, for their titles."""


def dimension_name(dimension: int, learned: bool = False) -> str:
    """ "8 sin", "9 cos"; of a learned table only the number, "8"."""
    return str(dimension) if learned else f"{dimension} {'cos' if dimension % 2 else 'sin'}"


def dimension_formulas(dimensions: int, wavelengths: Array | None) -> list[str]:
    """For the hover text of each dimension: its formula and wavelength, or only its number for a learned table."""
    if wavelengths is None:
        return [f"dimension {j}" for j in range(dimensions)]
    d_model = 2 * len(wavelengths)
    return [
        f"dimension {j} (pair {j // 2})<br>{'cos' if j % 2 else 'sin'}(pos / 10000<sup>{j - j % 2}/{d_model}</sup>), "
        f"wavelength {positions_text(wavelengths[j // 2])}"
        for j in range(dimensions)
    ]


def positions_text(wavelength: float) -> str:
    """A wavelength in positions: "6.28", "54,410"."""
    return f"{wavelength:,.{2 if wavelength < 100 else 0}f}"


def table_map(
    encoding: Array, wavelengths: Array | None, sentence_length: int, limits: tuple[float, float] = (-1, 1)
) -> go.Figure:
    """The table itself, a row for each position, with a line below the rows that the sentence uses.

    Args:
        encoding: the rows and columns to show.
        wavelengths: (pair,) of the whole table; None for a learned one.
        sentence_length: number of rows that the sentence uses.
        limits: colour range, stated on the colour bar.
    """
    positions, dimensions = encoding.shape
    hover = f"{VALUE}position %{{y}}, %{{x}}"
    lines, notes = [], []
    if sentence_length < positions:
        lines = [hline(sentence_length - 0.5, color="black", width=1.5, dash="dash")]
        used = f"↑ your sentence: positions 0 to {sentence_length - 1}" if sentence_length > 1 else "↑ your sentence"
        place = {"x": 1, "xref": "x domain", "xanchor": "right", "y": sentence_length - 0.5, "yanchor": "top"}
        look = {"bgcolor": "rgba(255,255,255,0.85)", "font": {"color": "#222", "size": 12}}
        notes = [text(used, **place, **look)]
    return figure(
        [_map(encoding, hover, x=dimension_formulas(dimensions, wavelengths))],
        height=530,
        coloraxis=signed_axis(limits),
        xaxis=axis_ticks([str(j) for j in range(dimensions)], MOST_TICKS) | {"title": "dimension"},
        yaxis=NO_GRID | {"title": "position", "autorange": "reversed"},
        shapes=lines,
        annotations=notes,
    )


def similarity_map(similarities: Array, name: str, limit: float) -> go.Figure:
    """The similarity of each pair of positions.

    Args:
        similarities: (position, position).
        name: the measure.
        limit: its largest possible magnitude.
    """
    square = {"title": "position", "constrain": "domain"}
    return figure(
        [_map(similarities, f"{VALUE}{name} of positions %{{y}} and %{{x}}")],
        height=440,
        coloraxis=signed_axis((-limit, limit)),
        xaxis=square,
        yaxis=square | NO_GRID | {"autorange": "reversed", "scaleanchor": "x"},
    )


def sum_titles(factor: str, added: str, normed: bool) -> dict[str, str]:
    """Titles of the two summands and their sum, by their names in the Trace.

    Args:
        factor: of the embedding, such as "√d_model"; empty: there is none.
        added: what is added to it.
        normed: whether a norm follows before layer 0.
    """
    return {
        "embedding": f"embedding × {factor}" if factor else "embedding",
        "positional": f"+ {added}",
        "sum": "= sum, before a norm" if normed else "= input of layer 0",
    }


PARTS: Mapping[str, str] = MappingProxyType(sum_titles("√d_model", "positional encoding", normed=False))
"""the same in the paper"""


def sum_maps(
    embedding: Array, positional: Array, total: Array, tokens: Sequence[str], titles: Mapping[str, str] = PARTS
) -> go.Figure:
    """embedding + positional encoding = input, a row for each token, in one colour range.

    Args:
        embedding: (token, d_model), times its factor.
        positional: (token, d_model).
        total: (token, d_model).
        tokens: names of the rows.
        titles: from `sum_titles`.
    """
    return stacked_maps(dict(zip(titles.values(), (embedding, positional, total), strict=True)), tokens)


def learned_and_sinusoidal_maps(learned: Array, sinusoidal: Array) -> go.Figure:
    """A learned table above the paper's sinusoids, in one colour range."""
    return stacked_maps({"learned by this model": learned, "sinusoids of the paper": sinusoidal}, None)


def stacked_maps(maps: Mapping[str, Array], tokens: Sequence[str] | None) -> go.Figure:
    """Maps of one shape in one colour range, one below the other, so that their columns are aligned."""
    rows = len(next(iter(maps.values())))
    row = "position" if tokens is None else "token"
    names = None if tokens is None else escape(numbered(tokens))
    each = min(max(17 * rows, 60), 320)
    height = len(maps) * (each + GAP) + 60
    yaxis = NO_GRID | {"autorange": "reversed", "title": row}
    if tokens is not None:
        yaxis |= axis_ticks(numbered(tokens), min(30, each // 15))
    return figure(
        [
            _map(values, f"{VALUE}{title}<br>{row} %{{y}}, dimension %{{x}}", y=names, panel=panel)
            for panel, (title, values) in enumerate(maps.items(), start=1)
        ],
        grid(len(maps), 1, list(maps), TITLE_LEFT, shared_xaxes=True, vertical_spacing=GAP / height, yaxis=yaxis),
        panels("xaxis", [len(maps)], {"title": "dimension"}),
        height=height + 60,
        # The colour bar lies above the title of the first map.
        coloraxis=merge(signed_axis(symmetric_range(*maps.values())), {"colorbar": {"y": 1 + 24 / height}}),
        margin={"t": 100},
    )


def _map(values: Array, hover: str, **properties: object) -> dict:
    return heatmap(z=np.ascontiguousarray(values, dtype=np.float32), coloraxis="coloraxis", hover=hover, **properties)
