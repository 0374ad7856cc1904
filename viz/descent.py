"""Lines of descent: who comes from whom, in lanes over the years, with a circle whose area is a size."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from viz.figure import LEGEND_ABOVE, NO_GRID, StableFigure, escape, figure, hline, scatter, text
from viz.forms import Array, Form, array_name
from viz.labels import say_label
from viz.theme import CHOSEN, FAINT, GUIDE, TEXT
from viz.tokens import text_width

ROW, LETTER = 17, 11
"""pixels of a row, and of the name in it"""
LARGEST, DOT = 38, 6
"""pixels across: the circle of the largest size; and of those that would be smaller, or have none"""
ABOVE, BELOW, BETWEEN = 34, 28, 6
"""pixels above all lanes, for the legend; below them, for the years; and between two of them"""
PHONE = 330
"""pixels of all years on a phone"""
HOVER = 44
"""letters in a line of the hover text"""


@dataclass(frozen=True)
class Kin:
    """One of a family."""

    name: str
    year: float
    lane: str
    size: float | None
    """None: not published"""
    parent: str = ""
    about: Mapping[str, str] = field(default_factory=dict)
    """for the hover text: of what -> what there is to say"""


@dataclass(frozen=True)
class Descent(Form):
    """A row for each of a family, below the one that it descends from; a click chooses one that `chooses` names."""

    family: Sequence[Kin]
    lanes: Mapping[str, str]
    """from the top down: name -> colour"""
    size: str
    """what the area of a circle is: “parameters”"""
    chosen: str = ""

    def clicked(self, point: Mapping[str, Any]) -> dict[str, Any]:
        place = point["point_index"]
        return dict(self.chooses[place]) if place < len(self.chooses) else {}

    @property
    def names(self) -> list[str]:
        """Of all, in the order of the arrays."""
        return [one.name for one in self.family]

    @property
    def line(self) -> list[str]:
        """The chosen one, and before it those that it descends from."""
        parents, line = {one.name: one.parent for one in self.family}, [self.chosen]
        while parent := parents.get(line[0]):
            line.insert(0, parent)
        return line

    @property
    def least(self) -> float:
        """The size from which on circles are drawn to scale."""
        return max(one.size for one in self.family if one.size) * (DOT / LARGEST) ** 2

    def draw(self) -> StableFigure:
        rows, heads, height = self._rows()
        start, end = self._ends()
        years = [*range(int(start) + 1, int(max(one.year for one in self.family)) + 1)]
        across = [_across(one, self.least) for one in self.family]
        titles = [self._title(lane, top, (start, end)) for lane, top in heads.items()]
        circles = scatter(
            x=[one.year for one in self.family],
            y=[rows[one.name] for one in self.family],
            mode="markers+text",
            marker={
                "symbol": ["circle" if one.size else "diamond-open" for one in self.family],
                "size": across,
                "color": [self.lanes[one.lane] for one in self.family],
                "opacity": 1,
                "line": {"width": 1, "color": GUIDE},
            },
            text=[self._label(one) for one in self.family],
            textposition="middle right",
            textfont={"size": LETTER, "color": TEXT},
            cliponaxis=False,
            showlegend=False,
            customdata=["<br>".join(_about(one)) for one in self.family],
            hover="%{customdata}",
            unselected={"marker": {"opacity": 1}, "textfont": {"color": TEXT}},
        )
        return figure(
            [*self._lines(rows), circles, *self._ring(rows)],
            {"shapes": [hline(top, color=FAINT, dash="solid") for top in [*heads.values()][1:]]},
            {"annotations": titles, "legend": LEGEND_ABOVE},
            {"xaxis": {"range": [start, end], "tickvals": years, "ticktext": [*map(str, years)]}},
            {"yaxis": {"range": [height, 0], "showticklabels": False} | NO_GRID},
            self._marked(),
            self.layout,
            height=height + ABOVE + BELOW,
            margin={"l": 8, "r": 8, "t": ABOVE, "b": BELOW, "pad": 0},
            showlegend=True,
        )

    def _label(self, one: Kin) -> str:
        """The name; that of the chosen one in bold, and clear of the ring."""
        (name,) = escape([one.name])
        return f"\u2002<b>{name}</b>" if one.name == self.chosen else name

    def _rows(self) -> tuple[dict[str, float], dict[str, float], int]:
        """Pixels from the top: the middle of each row, the top of each lane, and the end of all."""
        rows, heads, down = {}, {}, 0.0
        for lane in (lane for lane in self.lanes if any(one.lane == lane for one in self.family)):
            heads[lane], down = down, down + BETWEEN / 2
            for one in self._ordered(lane):
                high = max(ROW, _across(one, self.least) + 4)
                rows[one.name], down = down + high / 2, down + high
            down += BETWEEN / 2
        return rows, heads, round(down)

    def _ordered(self, lane: str, parent: str = "") -> Iterator[Kin]:
        """Those of a lane, each followed by those that descend from it: no line crosses another."""
        some = [one for one in self.family if one.lane == lane]
        names = {one.name for one in some}
        for one in sorted(some, key=lambda one: one.year):
            if (one.parent if one.parent in names else "") == parent:
                yield one
                yield from self._ordered(lane, one.name)

    def _ends(self) -> tuple[float, float]:
        """Ends of the axis: each name has room at the right of its circle, on a phone, too."""
        start = min(one.year for one in self.family) - 0.2
        shares = [(_beside(one, self.least) / PHONE, one.year - start) for one in self.family]
        return start, start + max(years / (1 - share) for share, years in shares)

    def _title(self, lane: str, top: float, ends: tuple[float, float]) -> dict:
        """The name of a lane: at that side of its first row where there is room on a phone."""
        first = next(self._ordered(lane))
        taken = (first.year - ends[0]) / (ends[1] - ends[0]) * PHONE + _beside(first, self.least)
        side = "right" if taken + text_width([say_label(lane)], 12) < PHONE else "left"
        look = {"font": {"size": 12, "color": TEXT}, "xanchor": side, "yanchor": "top"}
        return text(f"<b>{lane}</b>", x=ends[side == "right"], y=top + BETWEEN / 2, **look)

    def _lines(self, rows: Mapping[str, float]) -> Iterator[dict]:
        """From each parent down or up to the row, and along it."""
        line, years = set(self.line), {one.name: one.year for one in self.family}
        kin = [one for one in self.family if one.parent]
        looks = (
            ([one for one in kin if one.size], {"color": GUIDE, "width": 1}),
            ([one for one in kin if not one.size], {"color": GUIDE, "width": 1, "dash": "dot"}),
            ([one for one in kin if one.name in line], {"color": CHOSEN, "width": 2.5}),
        )
        for some, look in looks:
            corners = [(years[one.parent], rows[one.parent], one.year, rows[one.name]) for one in some]
            yield scatter(
                x=[x for then, _, now, _ in corners for x in (then, then, now, None)],
                y=[y for _, before, _, row in corners for y in (before, row, row, None)],
                mode="lines",
                line=look,
                showlegend=False,
            )

    def _ring(self, rows: Mapping[str, float]) -> Iterator[dict]:
        """Around the chosen one; and what the legend says of those without a size."""
        for one in (one for one in self.family if one.name == self.chosen):
            ring = {
                "symbol": "circle-open",
                "size": _across(one, self.least) + 6,
                "color": CHOSEN,
                "line": {"width": 3},
            }
            yield scatter(x=[one.year], y=[rows[one.name]], mode="markers", marker=ring, showlegend=False)
        diamond = {"symbol": "diamond-open", "size": DOT + 3, "color": GUIDE, "line": {"width": 2}}
        yield scatter(x=[None], y=[None], mode="markers", marker=diamond, name="size not published")

    def arrays(self) -> dict[str, Array]:
        """The years, and the sizes: NaN where they are not published."""
        sizes = [np.nan if one.size is None else one.size for one in self.family]
        return {"year": np.array([one.year for one in self.family]), array_name(self.size): np.array(sizes, float)}

    def table(self) -> pd.DataFrame | None:
        parents = [one.parent for one in self.family]
        return pd.DataFrame({"name": self.names, "parent": parents} | self.arrays())


def _across(one: Kin, least: float) -> float:
    """Pixels."""
    return DOT + 3 if one.size is None else DOT * np.sqrt(max(one.size / least, 1))


def _beside(one: Kin, least: float) -> float:
    """Pixels from the middle of the circle to the end of the name, when it is the chosen one."""
    return _across(one, least) / 2 + LETTER + 1.06 * text_width([one.name], LETTER)


def _about(one: Kin) -> Iterator[str]:
    yield f"<b>{escape([one.name])[0]}</b>, {int(one.year)}"
    for of, said in one.about.items():
        yield from textwrap.wrap(f"{say_label(of)}: {say_label(said)}", HOVER)
