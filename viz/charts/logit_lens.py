"""Figures of Logit lens: the next token as read from every sub-layer, and the neurons of a feed-forward layer."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from viz.figure import LEGEND_ABOVE, NO_GRID, TITLE_LEFT, bar, curve, escape, figure, frame, grid, heatmap, scatter
from viz.heatmap import cells_height, colours
from viz.theme import CHOSEN, OKABE_ITO, WEIGHTS
from viz.tokens import as_plotly, axis_ticks, labels

Array = np.ndarray

SIDE = 340
"""Pixels: the least height of the grid and the curves, which stand side by side."""


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
            [f"{name}<br>{p:.1%}" for name, p in zip(*row, strict=True)]
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
        height=max(80 + 40 * len(steps), SIDE) + 20,
        margin={"t": 50, "b": 10},
        xaxis={"title": "colour: probability, 0 to 1", "side": "top", "type": "category"},
        yaxis=NO_GRID | {"autorange": "reversed"},
        shapes=frames,
    )


def lens_curves(probability: Array, rank: Array, steps: Sequence[str], vocabulary: int) -> go.Figure:
    """Probability and rank of the token finally predicted after every step, at one position.

    Args:
        probability: (step,), 0 to 1.
        rank: (step,), 1 = most probable.
        steps: names of the columns.
        vocabulary: number of tokens, which is the worst rank.
    """
    series = ((1, "probability", probability, OKABE_ITO[0]), (2, "rank", rank, OKABE_ITO[5]))
    powers = [10**n for n in range(len(str(vocabulary))) if 10**n <= vocabulary]
    return figure(
        [
            curve(
                list(steps),
                values,
                name,
                colour,
                symbol="circle",
                panel=panel,
                hover=f"after %{{x}}<br>{name} <b>%{{y:.7g}}</b>",
            )
            for panel, name, values, colour in series
        ],
        grid(
            2,
            titles=("Probability", "Rank"),
            title_style=TITLE_LEFT,
            shared_xaxes=True,
            vertical_spacing=0.2,
            xaxis={"tickangle": -45, "type": "category"},
        ),
        height=max(80 + 40 * len(steps), SIDE),
        showlegend=False,
        margin={"t": 30},
        yaxis={"range": [-0.03, 1.03]},
        yaxis2={
            "type": "log",
            "range": [np.log10(vocabulary * 1.3), -0.12],
            "tickvals": powers,
            "ticktext": [f"{n:,}" for n in powers],
        },
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
    hover = [f"{as_plotly(row)}<br>finally: {as_plotly(name)}" for row, name in zip(rows, finally_, strict=True)]
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


def neuron_chart(hidden: Array, top: Array) -> go.Figure:
    """The hidden activations of a feed-forward layer at one token, those that write most marked.

    Args:
        hidden: (d_ff,).
        top: neurons to mark.
    """
    hover = "neuron %{x}<br>activation <b>%{y:.7g}</b>"
    return figure(
        [
            bar(
                x=np.arange(len(hidden)),
                y=hidden,
                width=max(len(hidden) / 400, 0.8),
                name="all neurons",
                marker={"color": OKABE_ITO[0], "line": {"width": 0}},
                hover=hover,
            ),
            scatter(
                x=top,
                y=hidden[top],
                mode="markers",
                name="those that write most, listed in the table",
                marker={"color": OKABE_ITO[5], "symbol": "diamond", "size": 9},
                hover=hover,
            ),
        ],
        height=260,
        legend=LEGEND_ABOVE,
        xaxis={"title": "neuron", "range": [-0.5 - len(hidden) / 100, len(hidden) * 1.01]},
        yaxis={"title": "activation h", "zeroline": True},
    )


def neuron_table(
    top: Array, hidden: Array, written: Array, promoted: Sequence[Sequence[str]], gains: Array
) -> pd.DataFrame:
    """One line for each neuron.

    Args:
        top: (k,) neurons.
        hidden: (d_ff,) activations.
        written: (d_ff,) lengths of what each neuron writes.
        promoted: (k, pieces) pieces whose logits it raises most.
        gains: (k, pieces) by how much.
    """
    raised = [
        "   ".join(f"{label} {gain:+.2f}" for label, gain in zip(labels(pieces), row, strict=True))
        for pieces, row in zip(promoted, gains, strict=True)
    ]
    return pd.DataFrame(
        {"neuron": top, "activation h": hidden[top], "writes ‖h w‖": written[top], "raises the logits of": raised}
    )
