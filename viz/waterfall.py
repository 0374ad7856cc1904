"""A waterfall lying on its side: how the terms of a sum lead from 0 to the sum, one bar a term."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from viz.figure import NO_GRID, StableFigure, bar, escape, figure
from viz.forms import UNDIMMED, Array, Form, array_name
from viz.latex import signed
from viz.theme import GUIDE, OKABE_ITO

LOWERS, RAISES = OKABE_ITO[:2]
ROW, AROUND = 22, 64
"""pixels of a bar with the space below it, and of all that is not bars"""
ROOM = 0.14
"""for the numbers beside the bars, as a share of the axis"""
BESIDE = 22
"""pixels more for them at the names: on a phone that share is less than a number"""


@dataclass(frozen=True)
class Waterfall(Form):
    """Terms from the top down, each bar beginning where the last one ended, and their sum as the last bar."""

    names: Sequence[str]
    """of the terms, and last of the sum"""
    values: Array
    """(term,)"""
    title: str
    """what a term does, on the axis: “adds to the lead”"""
    number: str = "+.2f"

    def draw(self) -> StableFigure:
        ends = np.cumsum(self.values)
        values, starts = np.append(self.values, ends[-1]), np.append(ends - self.values, 0.0)
        texts, rows = [signed(value, self.number) for value in values], np.arange(len(values))
        bars = bar(
            x=values,
            y=rows,
            base=starts,
            orientation="h",
            name=self.title,
            marker={"color": [*(RAISES if value >= 0 else LOWERS for value in self.values), GUIDE]},
            text=texts,
            textposition="outside",
            cliponaxis=False,
            customdata=list(zip(escape(self.names), texts, strict=True)),
            hover="%{customdata[0]}<br>%{customdata[1]}",
            **(UNDIMMED if self.sets else {}),
        )
        joints = [
            {"type": "line", "x0": end, "x1": end, "y0": row, "y1": row + 1, "line": {"color": GUIDE, "width": 1}}
            for row, end in enumerate(ends)
        ]
        low, high = min(0.0, *ends), max(0.0, *ends)
        room = ROOM * ((high - low) or 1.0)
        rows_axis = {
            "ticklabelstandoff": BESIDE,
            "tickvals": rows,
            "ticktext": escape(self.names),
            "range": [len(rows) - 0.4, -0.6],
        } | NO_GRID
        return figure(
            [bars],
            {"shapes": joints},
            {"xaxis": {"title": self.title, "range": [low - room, high + room], "zeroline": True}, "yaxis": rows_axis},
            self._marked(),
            self.layout,
            height=ROW * len(rows) + AROUND,
            showlegend=False,
            bargap=0.25,
        )

    def arrays(self) -> dict[str, Array]:
        return {array_name(self.title): self.values}

    def table(self) -> pd.DataFrame | None:
        return pd.DataFrame({"part": list(self.names[: len(self.values)])} | self.arrays())
