"""Positions as maps (paper, section 3.5): one row for each position, or for each token, and the names of dimensions.

An `encoding` is (position, d_model), dimension 2i a sine and 2i+1 the cosine of pair i, as the model adds it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from viz.figure import NO_GRID, TITLE_LEFT, StableFigure, escape, figure, grid, heatmap, merge, panels
from viz.forms import Form, Mark, array_name
from viz.heatmap import signed_axis
from viz.labels import say_label
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
        return [say_label(f"dimension {j}") for j in range(dimensions)]
    d_model = 2 * len(wavelengths)
    return [
        say_label(f"dimension {j} (pair {j // 2})")
        + f"<br>{'cos' if j % 2 else 'sin'}(pos / 10000<sup>{j - j % 2}/{d_model}</sup>), "
        + say_label(f"wavelength {positions_text(wavelengths[j // 2])}")
        for j in range(dimensions)
    ]


def positions_text(wavelength: float) -> str:
    """A wavelength in positions: "6.28", "54,410"."""
    return f"{wavelength:,.{2 if wavelength < 100 else 0}f}"


def end_of_text(length: int, rows: int, whose: str) -> list[Mark]:
    """The line below the rows of a text, in a map of `rows` positions; none where the text has them all."""
    if length >= rows:
        return []
    used = f"↑ {whose}: positions 0 to {length - 1}" if length > 1 else f"↑ {whose}"
    place = {"x": 1, "xref": "x domain", "xanchor": "right", "yanchor": "top"}
    look = {"bgcolor": "rgba(255,255,255,0.85)", "font": {"color": "#222", "size": 12}}
    return [Mark(y=length - 0.5, text=used, colour="black", dash="dash", width=1.5, at=place | look)]


@dataclass(frozen=True, kw_only=True)
class PositionMap(Form):
    """Numbers of each position, a row each, the first one on top."""

    values: Array
    """(position, column)"""
    limits: tuple[float, float]
    """of the colours, stated on the colour bar"""
    title: str
    """of the columns"""
    what: str = ""
    """what a value is, for the hover text"""
    columns: Sequence[str] | None = None
    """names for the table"""
    explained: Sequence[str] | None = None
    """what each column is, for the hover text, where it is not a position"""
    height: int = 530

    def draw(self) -> StableFigure:
        columns, ticks, square = {}, {"constrain": "domain"}, {"constrain": "domain", "scaleanchor": "x"}
        place = "of positions %{y} and %{x}"
        if self.explained is not None:
            columns, square, place = {"x": self.explained}, {}, "at position %{y}, %{x}"
            ticks = axis_ticks([str(i) for i in range(len(self.explained))], MOST_TICKS)
        hover = VALUE + f"{self.what} {place}".removeprefix(" at ")
        return figure(
            [_map(self.values, hover, **columns)],
            {"coloraxis": signed_axis(self.limits), "xaxis": ticks | {"title": self.title}},
            {"yaxis": NO_GRID | square | {"title": "position", "autorange": "reversed"}},
            self._marked(),
            self.layout,
            height=self.height,
        )

    def arrays(self) -> dict[str, Array]:
        return {"": self.values}

    def table(self) -> pd.DataFrame:
        return pd.DataFrame(self.values, columns=self.columns).rename_axis("position").reset_index()


@dataclass(frozen=True, kw_only=True)
class StackedMaps(Form):
    """Maps of one shape in one colour range, one below the other, so that their columns are aligned."""

    maps: Mapping[str, Array]
    """title -> (row, dimension)"""
    tokens: Sequence[str] | None = None
    """pieces, the rows; None: the rows are positions"""

    def draw(self) -> StableFigure:
        rows, tokens = len(next(iter(self.maps.values()))), self.tokens
        row = "position" if tokens is None else "token"
        names = None if tokens is None else escape(numbered(tokens))
        room = min(max(17 * rows, 60), 320)
        height = len(self.maps) * (room + GAP) + 60
        yaxis = NO_GRID | {"autorange": "reversed", "title": row}
        if tokens is not None:
            yaxis |= axis_ticks(numbered(tokens), min(30, room // 15))
        return figure(
            [
                _map(values, f"{VALUE}{title}<br>{row} %{{y}}, dimension %{{x}}", y=names, panel=panel)
                for panel, (title, values) in enumerate(self.maps.items(), start=1)
            ],
            grid(
                len(self.maps),
                1,
                list(self.maps),
                TITLE_LEFT,
                shared_xaxes=True,
                vertical_spacing=GAP / height,
                yaxis=yaxis,
            ),
            panels("xaxis", [len(self.maps)], {"title": "dimension"}),
            self.layout,
            height=height + 60,
            # The colour bar lies above the title of the first map.
            coloraxis=merge(signed_axis(symmetric_range(*self.maps.values())), {"colorbar": {"y": 1 + 24 / height}}),
            margin={"t": 100},
        )

    def arrays(self) -> dict[str, Array]:
        return {array_name(title): values for title, values in self.maps.items()}


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
    maps = dict(zip(titles.values(), (embedding, positional, total), strict=True))
    return StackedMaps(maps=maps, tokens=tokens).draw()


def _map(values: Array, hover: str, **properties: object) -> dict:
    return heatmap(z=np.ascontiguousarray(values, dtype=np.float32), coloraxis="coloraxis", hover=hover, **properties)
