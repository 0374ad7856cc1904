"""The picture of Gap by gap: the best guess for each gap at each step, until the gap is filled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from viz.figure import INVISIBLE, NO_GRID, StableFigure, bar, escape, figure, frame, heatmap, merge, scatter
from viz.forms import TALLEST_BELOW_CONTROLS, UNDIMMED, Array, Form
from viz.heatmap import cells_height
from viz.labels import say_label
from viz.theme import CHOSEN, FAINT, GUIDE, OKABE_ITO, TEXT
from viz.tokens import MOST_ROOM, text_width

AROUND = 92
"""pixels above and below the rows"""
ROW = 36
"""pixels, at most"""
LEAST_TEXT = 9
"""pixels of a guess; a smaller one is left to the hover text"""
WITHIN = 0.02, 0.07
"""of a cell, between its edge and the frame of what fills it: beside it, and above and below, as of a box"""
TINTS = [[0, "rgba(86, 180, 233, 0)"], [1, "rgba(86, 180, 233, 0.65)"]]
"""of probabilities from 0 to 1: pale enough for words on them, on light and dark"""


@dataclass(frozen=True, kw_only=True)
class GapsByStep(Form):
    """A row for each gap, a column for each step: the best guess there, coloured by its probability, and grey once the
    gap is filled.

    A guess is written once, in a box from the first step at which it is the best. A click chooses the step.
    """

    rows: Sequence[str]
    """of the gaps, plain text"""
    guesses: Sequence[Sequence[str]]
    """(gap, step): plain text; from the step that fills the gap on, what stands there"""
    probabilities: Array
    """(gap, step), 0 to 1; NaN after the step that fills the gap"""
    chosen: int
    """the step to frame"""

    def clicked(self, point: Mapping[str, Any]) -> dict[str, int]:
        """The step of a cell, counted from 1."""
        return {"step": int(point["customdata"][0])}

    def draw(self) -> StableFigure:
        gaps, steps = self.probabilities.shape
        filled = np.isfinite(self.probabilities).sum(axis=1) - 1
        names = [escape(row) for row in self.guesses]
        cells = heatmap(
            z=self.probabilities.astype(np.float32),
            colorscale=TINTS,
            zmin=0,
            zmax=1,
            showscale=False,
            x=np.arange(steps),
            y=np.arange(gaps),
        )
        stands = {"base": filled + 0.5, "x": steps - 1 - filled, "y": np.arange(gaps)}
        boxes = [(gap, *box) for gap, line in enumerate(names) for box in _runs(line)]
        guesses = {
            "base": [box[1] - 0.5 for box in boxes],
            "x": [box[2] for box in boxes],
            "y": [box[0] for box in boxes],
        }
        look = {"orientation": "h", "width": 1 - 2 * WITHIN[1], "showlegend": False}
        outline = {"color": "rgba(0, 0, 0, 0)", "line": {"color": GUIDE, "width": 1}}
        # Without a text font for the selection Plotly fails on a click.
        font = {"textfont": {"color": TEXT}}
        clicked = {"selected": font, "unselected": UNDIMMED["unselected"] | font}
        return figure(
            [
                cells,
                bar(**stands, **look, marker={"color": FAINT}, name="filled", **(UNDIMMED if self.sets else {})),
                bar(
                    **guesses,
                    **look,
                    marker=outline,
                    name="best guess",
                    text=[box[3] for box in boxes],
                    textposition="inside",
                    insidetextanchor="start",
                    insidetextfont={"color": TEXT, "size": 13},
                    textangle=0,
                    **(clicked if self.sets else {}),
                ),
                self._points(names),
            ],
            height=cells_height(gaps, TALLEST_BELOW_CONTROLS - AROUND, ROW) + AROUND,
            margin={"t": 66, "b": 12, "l": 16 + text_width(self.rows, most=MOST_ROOM)},
            barmode="overlay",
            hoverdistance=200,
            uniformtext={"mode": "hide", "minsize": LEAST_TEXT},
            xaxis={"title": "step; colour: probability of the best guess, 0 to 1", "side": "top"}
            | {"tickvals": np.arange(steps), "ticktext": [str(step + 1) for step in range(steps)]}
            | {"range": [-0.5, steps - 0.5]},
            yaxis=NO_GRID | {"tickvals": np.arange(gaps), "ticktext": escape(self.rows), "range": [gaps - 0.5, -0.5]},
            shapes=[
                frame((self.chosen, self.chosen), (0, gaps - 1), CHOSEN),
                *(_filled(gap, step) for gap, step in enumerate(filled.tolist())),
            ],
        )

    def _points(self, names: Sequence[Sequence[str]]) -> dict:
        """An invisible point on each cell: Plotly reports clicks on points only."""
        cells, rows = [*np.ndindex(self.probabilities.shape)], escape(self.rows)
        shares = [f"{p:.4f}" if np.isfinite(p) else say_label("filled") for p in self.probabilities.ravel()]
        said = zip(cells, shares, strict=True)
        return scatter(
            x=[step for _, step in cells],
            y=[gap for gap, _ in cells],
            customdata=[[step + 1, rows[gap], names[gap][step], share] for (gap, step), share in said],
            hover="step %{customdata[0]}, position %{customdata[1]}<br>%{customdata[2]}: <b>%{customdata[3]}</b>",
            **INVISIBLE,
        )

    def arrays(self) -> dict[str, Array]:
        return {"probability": self.probabilities, "guess": np.array(self.guesses)}


def _filled(gap: int, step: int) -> dict:
    """The cell in which a gap is filled; dashed, because in grey its colour is that of the frame of the step."""
    across, down = WITHIN
    line = frame((step + across, step - across), (gap + down, gap - down), OKABE_ITO[0], 2.5)
    return merge(line, {"line": {"dash": "4px,3px"}})


def _runs(line: Sequence[str]) -> list[tuple[int, int, str]]:
    """First step, number of steps, and text of each stretch of one guess."""
    found, start = [], 0
    for text, same in groupby(line):
        length = len([*same])
        found.append((start, length, text))
        start += length
    return found
