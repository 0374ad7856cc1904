"""Positions as maps (paper, section 3.5): one row for each position, or for each token, and the names of dimensions.

An `encoding` is (position, d_model), dimension 2i a sine and 2i+1 the cosine of pair i, as the model adds it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from model.language import Numeral
from viz.figure import NO_GRID, StableFigure, escape, figure, grid, heatmap, merge, panels, suffix, vline
from viz.forms import TALLEST_BELOW_CONTROLS, Form, Mark, array_name
from viz.heatmap import MOST_ROWS, cells_height, signed_axis
from viz.labels import say_label
from viz.theme import Array, usual_range
from viz.tokens import axis_ticks, numbered

VALUE = "<b>%{z:.7g}</b><br>"
"""Hover text of a number: all the digits of single precision."""
MOST_TICKS = 16
HEAD, FOOT = 86, 48
"""Pixels above maps, for their titles and the colour bar, and below them."""


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


def positions_text(wavelength: float) -> Numeral:
    """A wavelength in positions: "6.28", "54,410"."""
    return Numeral(f"{wavelength:,.{2 if wavelength < 100 else 0}f}")


def end_of_text(length: int, rows: int, whose: str) -> list[Mark]:
    """The line below the rows of a text, in a map of `rows` positions; none where the text has them all."""
    if length >= rows:
        return []
    used = f"↑ {whose}: positions 0 to {length - 1}" if length > 1 else f"↑ {whose}"
    place = {"x": 0, "xref": "x domain", "xanchor": "left", "yanchor": "top"}
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
    halves: tuple[str, str] | None = None
    """titles of the even columns and of the odd ones, which then stand beside each other"""
    height: int = TALLEST_BELOW_CONTROLS

    @property
    def roomy(self) -> bool:
        """Two maps need the width."""
        return self.halves is not None

    def draw(self) -> StableFigure:
        if self.halves:
            return self._draw_halves(self.halves)
        columns, square = {}, {"constrain": "domain", "scaleanchor": "x"}
        # Plotly measures the labels of an axis before it makes a map square, and would write the title between them.
        ticks = {"constrain": "domain", "title": {"standoff": 44}}
        place = "of positions %{y} and %{x}"
        if self.explained is not None:
            columns, square, place = {"x": self.explained}, {}, "at position %{y}, %{x}"
            ticks = axis_ticks([str(i) for i in range(len(self.explained))], MOST_TICKS)
        hover = VALUE + f"{self.what} {place}".removeprefix(" at ")
        return figure(
            [_map(self.values, hover, **columns)],
            {"coloraxis": signed_axis(self.limits), "xaxis": merge(ticks, {"title": self.title})},
            {"yaxis": NO_GRID | square | {"title": "position", "autorange": "reversed"}},
            self._marked(),
            self.layout,
            height=self.height,
        )

    def _draw_halves(self, titles: tuple[str, str]) -> StableFigure:
        explained, ticks = self.explained or [], {}
        for half in (0, 1):
            names = [str(i) for i in range(half, self.values.shape[1], 2)]
            ticks[f"xaxis{suffix(half + 1)}"] = axis_ticks(names, MOST_TICKS // 2) | {"title": self.title}
        return figure(
            [
                _map(self.values[:, half::2], f"{VALUE}position %{{y}}, %{{x}}", x=explained[half::2], panel=half + 1)
                for half in (0, 1)
            ],
            grid(
                1,
                2,
                titles,
                {"font": {"size": 14}},
                horizontal_spacing=0.03,
                yaxis=NO_GRID | {"range": [len(self.values) - 0.5, -0.5], "matches": "y"},
            ),
            ticks,
            {"yaxis": {"title": "position"}, "yaxis2": {"showticklabels": False, "ticks": ""}},
            replace(self, marks=[*self.marks, *(replace(mark, panel=2, text="") for mark in self.marks)])._marked(),
            self.layout,
            height=self.height,
            coloraxis=merge(signed_axis(self.limits), {"colorbar": {"y": 1 + 24 / (self.height - HEAD - FOOT)}}),
            margin={"t": HEAD, "b": FOOT},
        )

    def arrays(self) -> dict[str, Array]:
        return {"": self.values}

    def table(self) -> pd.DataFrame:
        return pd.DataFrame(self.values, columns=self.columns).rename_axis("position").reset_index()


@dataclass(frozen=True, kw_only=True)
class VectorMaps(Form):
    """Maps of one shape in one colour range, beside each other, so that their rows are aligned.

    The range leaves out few large numbers: 1% of all magnitudes at most.
    """

    maps: Mapping[str, Array]
    """title -> (row, dimension)"""
    tokens: Sequence[str] | None = None
    """pieces, the rows; None: the rows are positions"""
    waves: bool = False
    """whether the dimensions are a sine and a cosine in turn: all sines stand first then, each half by wavelength"""

    @property
    def roomy(self) -> bool:
        """Several maps need the width."""
        return len(self.maps) > 1

    @property
    def limits(self) -> tuple[float, float]:
        """Of the colours."""
        return usual_range(*self.maps.values())

    @property
    def beyond(self) -> float:
        """The share of all numbers that lie outside the limits."""
        magnitudes = np.abs(np.stack([*self.maps.values()]))
        return float((magnitudes > self.limits[1]).mean())

    @property
    def order(self) -> Array:
        """(d_model,): the dimensions from left to right."""
        every = np.arange(next(iter(self.maps.values())).shape[-1])
        return np.concatenate([every[::2], every[1::2]]) if self.waves else every

    def draw(self) -> StableFigure:
        count, tokens, order = len(self.maps), self.tokens, self.order
        dimensions = {"x": [dimension_name(one) for one in order]} if self.waves else {}
        half = (len(order) + 1) // 2
        quarters = [0, half // 2, half, half + half // 2]
        columns = {"tickvals": quarters, "ticktext": [dimension_name(order[one]) for one in quarters]}
        rows, row = len(next(iter(self.maps.values()))), "position" if tokens is None else "token"
        names = None if tokens is None else escape(numbered(tokens))
        room = cells_height(rows, TALLEST_BELOW_CONTROLS - HEAD - FOOT)
        ticks = {} if tokens is None else axis_ticks(numbered(tokens), MOST_ROWS)
        beside = {"showticklabels": False, "ticks": ""}
        return figure(
            [
                _map(
                    values[:, order],
                    f"{VALUE}{title}<br>{row} %{{y}}, dimension %{{x}}",
                    y=names,
                    panel=panel,
                    **dimensions,
                )
                for panel, (title, values) in enumerate(self.maps.items(), start=1)
            ],
            grid(
                1,
                count,
                list(self.maps),
                {"font": {"size": 14}},
                horizontal_spacing=0.03,
                xaxis={"title": "dimension", "matches": "x"} | (columns if self.waves else {}),
                yaxis=NO_GRID | {"range": [rows - 0.5, -0.5], "matches": "y"} | ticks,
            ),
            panels("yaxis", range(2, count + 1), beside),
            {"yaxis": {"title": row}} if tokens is None else {},
            {"shapes": [vline(half - 0.5, panel, dash="solid") for panel in range(1, count + 1)]} if self.waves else {},
            self.layout,
            height=room + HEAD + FOOT,
            # The colour bar lies above the titles.
            coloraxis=merge(signed_axis(self.limits, beyond=self.beyond > 0), {"colorbar": {"y": 1 + 24 / room}}),
            margin={"t": HEAD, "b": FOOT},
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


def _map(values: Array, hover: str, **properties: object) -> dict:
    return heatmap(z=np.ascontiguousarray(values, dtype=np.float32), coloraxis="coloraxis", hover=hover, **properties)
