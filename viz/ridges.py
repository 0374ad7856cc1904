"""Ridges: how the bars of one picture change from row to row, each row before the one above it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from viz.figure import NO_GRID, StableFigure, escape, figure, scatter, text
from viz.forms import Array, Form, array_name
from viz.heatmap import slanted_room
from viz.labels import say_label
from viz.latex import signed
from viz.theme import CHOSEN, FAINT, GREY
from viz.tokens import MOST_ROOM, axis_ticks

PEAK = 4
"""rows that a ridge of the largest value reaches up"""
LINE, FILL, BOLD = "#2C8FCB", "#A6D2EF", "#EDB08A"
"""opaque, on light and dark, so that a ridge hides what is behind it"""
BESIDE = 68
"""pixels for the notes at the right"""


@dataclass(frozen=True)
class Ridges(Form):
    """A number of each name in each row, title -> (name,); NaN where there is none."""

    names: Sequence[str]
    rows: Mapping[str, Array]
    titles: tuple[str, str]
    """what a name is, and what a number"""
    bold: str = ""
    """the row to stress"""
    notes: Sequence[str] = ()
    """beside each row"""
    most: float = 1.0
    """the number that reaches up `PEAK` rows"""

    def draw(self) -> StableFigure:
        count, titles = len(self.rows), [*self.rows]
        rows = [f"<b>{title}</b>" if title == self.bold else title for title in titles]
        beside = {"xref": "paper", "x": 1, "xanchor": "left", "xshift": 6, "font": {"size": 12, "color": GREY}}
        notes = [
            text(f"<b>{note}</b>" if titles[row] == self.bold else note, y=row, **beside)
            for row, note in enumerate(self.notes)
        ]
        return figure(
            [trace for row in range(count) for trace in self._ridge(row, titles[row])],
            {"annotations": notes, "xaxis": axis_ticks(self.names) | {"title": self.titles[0], "tickangle": -60}},
            {"xaxis": {"range": [-0.6, len(self.names) - 0.4]}},
            {"yaxis": {"range": [count - 0.8, -PEAK - 0.1], "tickvals": [*range(count)], "ticktext": rows} | NO_GRID},
            self._marked(),
            self.layout,
            height=self.height,
            margin={"l": 72, "r": BESIDE if self.notes else 20, "t": 16, "b": 44 + slanted_room(self.names, MOST_ROOM)},
            showlegend=False,
        )

    def _ridge(self, row: int, title: str) -> list[dict]:
        """Its base, and the steps above it; the middle of each step says its number."""
        steps = (np.arange(len(self.names))[:, None] + [-0.5, 0.0, 0.5]).ravel()
        values, chosen = self.rows[title], title == self.bold
        up = np.repeat(np.nan_to_num(values) / self.most * PEAK, 3)
        said = [signed(value, ".7g") if np.isfinite(value) else say_label("masked") for value in values]
        base = {"color": CHOSEN if chosen else FAINT, "width": 1.5 if chosen else 1}
        hover = f"{self.titles[0]} %{{customdata[0]}}<br>{title}: {self.titles[1]} <b>%{{customdata[1]}}</b>"
        return [
            scatter(x=steps, y=np.full(len(steps), row), mode="lines", line=base),
            scatter(
                x=steps,
                y=row - up,
                mode="lines",
                line={"color": CHOSEN if chosen else LINE, "width": 2.5 if chosen else 1.2, "simplify": False},
                fill="tonexty",
                fillcolor=BOLD if chosen else FILL,
                name=title,
                customdata=[[*pair] for pair in zip(escape(self.names), said, strict=True) for _ in range(3)],
                hover=hover,
            ),
        ]

    def arrays(self) -> dict[str, Array]:
        return {array_name(title): values for title, values in self.rows.items()}

    def table(self) -> pd.DataFrame | None:
        return pd.DataFrame({self.titles[0]: list(self.names)} | self.arrays())
