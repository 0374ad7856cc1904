"""Heat maps of positional encoding (paper, section 3.5): the table itself, its sum with the embedding, similarities.

An `encoding` is (position, d_model), dimension 2i a sine and 2i+1 the cosine of pair i, as the model adds it.
"""

import html
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from viz.figure import Draft, grid
from viz.theme import SIGNED, flat_bar, layout, symmetric_range
from viz.tokens import numbered

Array = np.ndarray

VALUE = "%{z:.7g}"
"""How hovering writes a number: all the digits that single precision has."""
MOST_TICKS = 16
GAP = 40
"""Pixels between maps, for their titles."""


def dimension_name(dimension: int, learned: bool = False) -> str:
    """Even dimensions are sines, odd ones cosines; a learned table's have only their number: "8 sin", "8"."""
    return str(dimension) if learned else f"{dimension} {'cos' if dimension % 2 else 'sin'}"


def formulas(dimensions: int, wavelengths: Array | None) -> list[str]:
    """What hovering says of each dimension: its formula and wavelength, or only its number for a learned table."""
    if wavelengths is None:
        return [f"dimension {j}" for j in range(dimensions)]
    d_model = 2 * len(wavelengths)
    return [
        f"dimension {j} (pair {j // 2})<br>{'cos' if j % 2 else 'sin'}(pos / 10000<sup>{j - j % 2}/{d_model}</sup>), "
        f"wavelength {length(wavelengths[j // 2])}"
        for j in range(dimensions)
    ]


def length(wavelength: float) -> str:
    """A number of positions: "6.28", "54,410"."""
    return f"{wavelength:,.{2 if wavelength < 100 else 0}f}"


def table_map(
    encoding: Array, wavelengths: Array | None, sentence_length: int, limits: tuple[float, float] = (-1, 1)
) -> go.Figure:
    """The table itself: a row a position, a column a dimension; a line where the sentence's rows end.

    Args:
        encoding: the rows and columns to draw.
        wavelengths: (pair,) of the whole table; None for a learned one.
        sentence_length: rows that the sentence uses.
        limits: of the colours, stated on the colour bar.
    """
    positions, dimensions = encoding.shape
    draft = Draft().add_trace(
        _heat(encoding, formulas(dimensions, wavelengths), None, f"<b>{VALUE}</b><br>position %{{y}}, %{{x}}")
    )
    draft.update_layout(coloraxis=_colours(limits))
    layout(draft, 530, "dimension", "position")
    step = -(-dimensions // MOST_TICKS)
    ticks = range(0, dimensions, step)
    draft.update_xaxes(**_no_grid(), tickmode="array", tickvals=[*ticks], ticktext=[str(tick) for tick in ticks])
    draft.update_yaxes(**_no_grid(), autorange="reversed")
    if sentence_length < positions:
        draft.add_hline(sentence_length - 0.5, line={"color": "black", "width": 1.5, "dash": "dash"})
        draft.add_annotation(
            text=f"↑ your sentence: positions 0 to {sentence_length - 1}" if sentence_length > 1 else "↑ your sentence",
            x=1,
            xref="x domain",
            xanchor="right",
            y=sentence_length - 0.5,
            yanchor="top",
            showarrow=False,
            bgcolor="rgba(255,255,255,0.85)",
            font={"color": "#222", "size": 12},
        )
    return draft.figure()


def similarity_map(similarities: Array, name: str, limit: float) -> go.Figure:
    """Every position with every other: `name` is what was computed, `limit` its largest possible magnitude."""
    heat = _heat(similarities, None, None, f"<b>{VALUE}</b><br>{name} of positions %{{y}} and %{{x}}")
    draft = Draft().add_trace(heat)
    draft.update_layout(coloraxis=_colours((-limit, limit)))
    layout(draft, 440, "position", "position")
    draft.update_yaxes(autorange="reversed", constrain="domain", scaleanchor="x", **_no_grid())
    draft.update_xaxes(constrain="domain", **_no_grid())
    return draft.figure()


def sum_maps(embedding: Array, positional: Array, total: Array, tokens: Sequence[str]) -> go.Figure:
    """embedding + positional = input, a token a row, in one colour range."""
    titles = ("embedding × √d_model", "+ positional encoding", "= input of layer 0")
    return _stacked(dict(zip(titles, (embedding, positional, total), strict=True)), tokens)


def learned_beside(learned: Array, sinusoidal: Array) -> go.Figure:
    """A learned table beside the paper's sinusoids, in one colour range."""
    return _stacked({"learned by this model": learned, "sinusoids of the paper": sinusoidal}, None)


def _stacked(maps: Mapping[str, Array], tokens: Sequence[str] | None) -> go.Figure:
    """Maps of one shape, one below the other in one colour range, so that a column of one stands over the next's."""
    rows = len(next(iter(maps.values())))
    names = None if tokens is None else [html.escape(name) for name in numbered(tokens)]
    each = min(max(17 * rows, 60), 320)
    height = len(maps) * (each + GAP) + 60
    draft = grid(len(maps), 1, titles=list(maps), shared_xaxes=True, vertical_spacing=GAP / height)
    for row, (title, values) in enumerate(maps.items(), start=1):
        hover = f"<b>{VALUE}</b><br>{title}<br>{'token' if tokens else 'position'} %{{y}}, dimension %{{x}}"
        draft.add_trace(_heat(values, None, names, hover), row=row, col=1)
    draft.update_annotations(x=0, xanchor="left", font_size=14)
    draft.update_layout(coloraxis=_colours(symmetric_range(*maps.values())))
    layout(draft, height + 60, "", "")
    # Above the first map's title.
    draft.update_layout(coloraxis_colorbar={"yref": "container", "yanchor": "top"}, margin={"t": 100})
    draft.update_xaxes(**_no_grid())
    draft.update_xaxes(title="dimension", row=len(maps))
    draft.update_yaxes(**_no_grid(), autorange="reversed", title="token" if tokens else "position")
    if names is not None:
        step = max(-(-rows // 30), -(-rows * 15 // each))
        draft.update_yaxes(tickmode="array", tickvals=list(range(0, rows, step)), ticktext=names[::step])
    return draft.figure()


def _heat(values: Array, x: Sequence[str] | None, y: Sequence[str] | None, hover: str) -> dict:
    z = np.ascontiguousarray(values, dtype=np.float32)
    return {
        "type": "heatmap",
        "z": z,
        "x": x,
        "y": y,
        "coloraxis": "coloraxis",
        "hovertemplate": hover + "<extra></extra>",
    }


def _colours(limits: tuple[float, float]) -> dict:
    """The signed scale, with its range written on the bar."""
    low, high = limits
    ticks = np.linspace(low, high, 3)
    bar = flat_bar("value") | {"tickvals": ticks, "ticktext": [f"{tick:.3g}" for tick in ticks]}
    return {"colorscale": SIGNED, "cmin": low, "cmax": high, "colorbar": bar}


def _no_grid() -> dict:
    return {"showgrid": False, "zeroline": False}
