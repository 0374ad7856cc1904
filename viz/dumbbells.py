"""Dumbbells: a number of each name before a change and after it, joined by a line whose colour says its direction."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from viz.figure import LEGEND_ABOVE, StableFigure, escape, figure, scatter
from viz.forms import Array, Form, array_name
from viz.labels import say_label
from viz.latex import signed
from viz.theme import GUIDE
from viz.tokens import axis_ticks
from viz.waterfall import LOWERS, RAISES


@dataclass(frozen=True)
class Dumbbells(Form):
    """Two numbers of each name, (name,), one above the other."""

    names: Sequence[str]
    before: Array
    after: Array
    titles: tuple[str, str]
    """of the axes"""
    series: tuple[str, str, str] = ("before", "after", "difference")
    """what the two numbers and their difference are"""
    range: tuple[float, float] | None = None
    """of the numbers; None: as they are"""
    number: str = ".6f"
    unit: str = ""
    what: str = "position"
    """what a name is, for the hover text"""

    def draw(self) -> StableFigure:
        own = {"range": list(self.range), "zeroline": True} if self.range else {}
        return figure(
            self._traces(),
            {"legend": LEGEND_ABOVE, "xaxis": axis_ticks(self.names) | {"title": self.titles[0]}},
            {"xaxis": {"range": [-0.6, len(self.names) - 0.4]}, "yaxis": {"title": self.titles[1]} | own},
            self._marked(),
            self.layout,
            height=self.height,
            showlegend=True,
        )

    def _traces(self) -> list[dict]:
        places, difference = np.arange(len(self.names)), self.after - self.before
        colours = [RAISES if one >= 0 else LOWERS for one in difference]
        first, second, third = self.series
        hover = f"{self.what} %{{x}}: %{{customdata[0]}}<br>{first} <b>%{{customdata[1]}}</b>{self.unit}"
        hover += f"<br>{second} <b>%{{customdata[2]}}</b>{self.unit}<br>{third} <b>%{{customdata[3]}}</b>{self.unit}"
        numbers = zip(self.before, self.after, difference, strict=True)
        formats = self.number, self.number, f"+{self.number}"
        said = [[signed(one, how) for one, how in zip(three, formats, strict=True)] for three in numbers]
        points = {"x": places, "mode": "markers", "cliponaxis": False}
        points |= {"customdata": [[name, *three] for name, three in zip(escape(self.names), said, strict=True)]}
        return [
            *(self._joints(name, colour, colours) for name, colour in (("raised", RAISES), ("lowered", LOWERS))),
            scatter(y=self.before, name=first, hover=hover, marker=_point("circle-open", GUIDE), **points),
            scatter(y=self.after, name=second, hover=hover, marker=_point("circle", colours), **points),
        ]

    def _joints(self, name: str, colour: str, colours: Sequence[str]) -> dict:
        """The lines of one colour, from each number before to the one after; a gap between two of them."""
        places = [place for place, one in enumerate(colours) if one == colour]
        return scatter(
            x=[x for place in places for x in (place, place, None)],
            y=[y for place in places for y in (self.before[place], self.after[place], None)],
            name=say_label(name),
            mode="lines",
            line={"color": colour, "width": 3},
        )

    def arrays(self) -> dict[str, Array]:
        numbers = self.before, self.after, self.after - self.before
        return {array_name(title): values for title, values in zip(self.series, numbers, strict=True)}

    def table(self) -> pd.DataFrame | None:
        return pd.DataFrame({self.titles[0]: list(self.names)} | self.arrays())


def _point(symbol: str, colour: str | Sequence[str]) -> dict:
    return {"symbol": symbol, "size": 9, "color": colour, "opacity": 1, "line": {"width": 2 * (symbol != "circle")}}
