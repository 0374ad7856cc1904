"""Figures of Logit lens: the next token as read from every sub-layer."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from model.language import language, tr
from viz.figure import NO_GRID, escape, figure, frame, heatmap
from viz.heatmap import cells_height, colours
from viz.theme import CHOSEN, WEIGHTS, Array
from viz.tokens import Verbatim, as_plotly, axis_ticks, labels


def lens_grid(tops: Sequence[Sequence[str]], probabilities: Array, steps: Sequence[str], followed: str) -> go.Figure:
    """The most probable tokens after every step at one position: a row a step, best first, coloured from 0 to 1.

    Args:
        tops: (step, k) pieces.
        probabilities: (step, k), of the whole vocabulary.
        steps: names of the rows.
        followed: piece of the token finally predicted, framed wherever it occurs.
    """
    names = [escape(labels(row)) for row in tops]
    cells = heatmap(
        z=np.ascontiguousarray(probabilities, dtype=np.float32),
        text=[
            [Verbatim(f"{name}<br>{language().number(f'{p:.1%}')}") for name, p in zip(*row, strict=True)]
            for row in zip(names, probabilities, strict=True)
        ],
        customdata=names,
        texttemplate="%{text}",
        textfont={"size": 12},
        x=[f"{rank + 1}." for rank in range(probabilities.shape[1])],
        y=list(steps),
        xgap=2,
        ygap=2,
        **colours(WEIGHTS, 0, 1),
        hover="after %{y}<br>%{x} %{customdata}<br>probability <b>%{z:.7g}</b>",
    )
    frames = [
        frame((rank, rank), (step, step), CHOSEN, 3)
        | {"x0": rank - 0.48, "x1": rank + 0.48, "y0": step - 0.46, "y1": step + 0.46}
        for step, row in enumerate(tops)
        for rank, piece in enumerate(row)
        if piece == followed
    ]
    return figure(
        [cells],
        height=100 + 40 * len(steps),
        margin={"t": 50, "b": 10},
        xaxis={"title": "colour: probability, 0 to 1", "side": "top", "type": "category"},
        yaxis=NO_GRID | {"autorange": "reversed"},
        shapes=frames,
    )


def lens_map(
    probability: Array, rank: Array, steps: Sequence[str], names: tuple[Sequence[str], Sequence[str]], chosen: int
) -> go.Figure:
    """The probability, after every step, of the token that each decoder row finally predicts.

    Args:
        probability: (row, step), 0 to 1.
        rank: (row, step), 1 = most probable.
        steps: names of the columns.
        names: of the rows, plain text; and the pieces that they finally predict, for the tick labels.
        chosen: the row to frame.
    """
    rows, predicted = names
    finally_ = labels(predicted)
    said = tr("finally")
    hover = [f"{as_plotly(row)}<br>{said}: {as_plotly(name)}" for row, name in zip(rows, finally_, strict=True)]
    return figure(
        [
            heatmap(
                z=np.ascontiguousarray(probability, dtype=np.float32),
                customdata=rank,
                text=[[row] * len(steps) for row in hover],
                x=list(steps),
                xgap=1,
                ygap=1 if len(rows) <= 30 else 0,
                **colours(WEIGHTS, 0, 1, "probability<br>0 to 1"),
                hover="row %{text}<br>after %{x}<br>probability <b>%{z:.7g}</b>, rank %{customdata}",
            )
        ],
        height=cells_height(len(rows), 480) + 130,
        margin={"t": 10, "b": 100},
        xaxis={"tickangle": -45, "type": "category"},
        yaxis=NO_GRID | axis_ticks([f"{i} {name}" for i, name in enumerate(finally_)]) | {"autorange": "reversed"},
        shapes=[frame((0, len(steps) - 1), (chosen, chosen), CHOSEN)],
    )
