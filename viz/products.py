"""A sum over pairs as a table: a square for each pair, whose area is what the pair adds, and the sums beside them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from viz.figure import NO_GRID, StableFigure, escape, figure, scatter
from viz.forms import TALLEST, UNDIMMED, Array, Form, array_name
from viz.heatmap import cells_table, slanted_room
from viz.labels import say_label
from viz.latex import signed
from viz.theme import GUIDE
from viz.tokens import MOST_ROOM
from viz.waterfall import LOWERS, RAISES

TALLEST_ROW = 64
"""pixels"""
AROUND = 56
"""pixels below the table, and above it besides the names of its columns"""
WIDTH = 330
"""pixels of all columns on a phone"""
NUMBER = 24
"""pixels of a number between its square and the next one"""
FEW = 5
"""columns whose numbers have room for two decimals on a phone"""


@dataclass(frozen=True)
class Products(Form):
    """What each part of one side adds with each part of the other, the sums of rows and columns, and the whole sum.

    A click on the sum of a column chooses by the column, any other by the row: `chooses` names rows, then columns.
    """

    rows: Sequence[str]
    columns: Sequence[str]
    values: Array
    """(row, column)"""
    title: str
    """what a pair does: “adds to q · k”"""
    axes: tuple[str, str] = ("row", "column")
    """what the rows and the columns are"""

    def clicked(self, point: dict) -> dict:
        row, column = divmod(point["point_index"], len(self.columns) + 1)
        place = row if row < len(self.rows) else row + column
        return dict(self.chooses[place]) if place < len(self.chooses) else {}

    def draw(self) -> StableFigure:
        (rows, columns), summed = self.values.shape, np.vstack([self.values, self.values.sum(axis=0)])
        table = np.hstack([summed, summed.sum(axis=1, keepdims=True)])
        names = [[*side, say_label("sum")] for side in (self.rows, self.columns)]
        above = slanted_room(names[1], MOST_ROOM)
        step = min((TALLEST - above - AROUND) / (rows + 1), TALLEST_ROW)
        most = min(step - NUMBER, WIDTH / (columns + 1))
        sides = most * np.sqrt(np.abs(table) / (np.abs(table).max() or 1.0))
        down, along = np.arange(rows + 1), np.arange(columns + 1)
        texts = [signed(value, "+.2f" if columns <= FEW else "+.1f") for value in table.ravel()]
        cells = [(escape((names[0][r], names[1][c])), table[r, c]) for r, c in np.ndindex(table.shape)]
        squares = scatter(
            x=np.tile(along, rows + 1),
            y=np.repeat(down, columns + 1),
            mode="markers+text",
            marker={
                "symbol": "square",
                "size": sides.ravel(),
                "opacity": 1,
                "color": [RAISES if value >= 0 else LOWERS for value in table.ravel()],
                "line": {"width": 0},
            },
            text=texts,
            textposition="bottom center",
            cliponaxis=False,
            name=self.title,
            customdata=[[*pair, float(value)] for pair, value in cells],
            hover="%{customdata[0]} · %{customdata[1]}<br>%{customdata[2]:+.4f}",
            **(UNDIMMED if self.sets else {}),
        )
        ends = {"x": [-0.5, along[-1] + 0.5], "y": [-0.5, down[-1] + 0.6]}
        line = {"type": "line", "line": {"color": GUIDE, "width": 1}}
        beside, below = columns - 0.5, rows - 0.38
        borders = [
            line | {"x0": beside, "x1": beside, "y0": ends["y"][0], "y1": ends["y"][1]},
            line | {"y0": below, "y1": below, "x0": ends["x"][0], "x1": ends["x"][1]},
        ]
        return figure(
            [squares],
            {"shapes": borders},
            {"xaxis": {"range": ends["x"], "title": self.axes[1], "side": "top", "tickangle": -50} | NO_GRID},
            {"xaxis": {"tickvals": along, "ticktext": escape(names[1])}},
            {"yaxis": {"range": ends["y"][::-1], "title": self.axes[0]} | NO_GRID},
            {"yaxis": {"tickvals": down, "ticktext": escape(names[0])}},
            self._marked(),
            self.layout,
            height=round(step * (rows + 1)) + above + AROUND,
            margin={"t": above + AROUND - 16, "b": 16},
            showlegend=False,
        )

    def arrays(self) -> dict[str, Array]:
        return {array_name(self.title): self.values}

    def table(self) -> pd.DataFrame | None:
        return cells_table(self.rows, self.columns, self.arrays())
