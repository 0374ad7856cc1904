"""What a stack's vectors say in words: the logit lens on the decoder, and the neurons of a feed-forward."""

import html
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from viz.figure import Draft, grid
from viz.theme import OKABE_ITO, WEIGHTS, layout
from viz.tokens import labels, ticks

Array = np.ndarray

SIDE = 340
"""Pixels: the least height of grid and curves, which stand side by side."""


def lens_grid(tops: Sequence[Sequence[str]], probabilities: Array, steps: Sequence[str], followed: str) -> go.Figure:
    """The most probable tokens after every step, at one position: a row a step, best first; colours are 0 to 1.

    Args:
        tops: (step, k) pieces.
        probabilities: (step, k), of the whole vocabulary.
        steps: names of the rows.
        followed: piece of the token finally predicted, to frame wherever it stands.
    """
    names = [[html.escape(label) for label in labels(row)] for row in tops]
    draft = Draft().add_heatmap(
        z=np.ascontiguousarray(probabilities, dtype=np.float32),
        text=[
            [f"{name}<br>{p:.1%}" for name, p in zip(*both, strict=True)]
            for both in zip(names, probabilities, strict=True)
        ],
        customdata=names,
        texttemplate="%{text}",
        textfont={"size": 12},
        x=[f"{place + 1}." for place in range(probabilities.shape[1])],
        xgap=2,
        ygap=2,
        colorscale=WEIGHTS,
        zmin=0,
        zmax=1,
        showscale=False,
        hovertemplate="after %{y}<br>%{x} %{customdata}<br>probability <b>%{z:.7g}</b><extra></extra>",
        y=list(steps),
    )
    for step, row in enumerate(tops):
        for place, piece in enumerate(row):
            if piece == followed:
                frame = {"x0": place - 0.48, "x1": place + 0.48, "y0": step - 0.46, "y1": step + 0.46}
                draft.add_shape(type="rect", **frame, line={"color": OKABE_ITO[5], "width": 3})
    layout(draft, max(80 + 40 * len(steps), SIDE) + 20, "colour: probability, 0 to 1", "")
    draft.update_layout(margin={"t": 50, "b": 10})
    draft.update_xaxes(side="top", showgrid=False, zeroline=False, type="category")
    return draft.update_yaxes(autorange="reversed", showgrid=False, zeroline=False, automargin=True).figure()


def lens_curves(probability: Array, rank: Array, steps: Sequence[str], vocabulary: int) -> go.Figure:
    """Probability and rank of the token finally predicted, step by step, at one position.

    Args:
        probability: (step,), 0 to 1.
        rank: (step,), 1 = the most probable.
        steps: names of the columns.
        vocabulary: number of tokens: the worst rank.
    """
    draft = grid(2, 1, shared_xaxes=True, vertical_spacing=0.2, titles=("Probability", "Rank"))
    x = list(steps)
    for row, (name, values, colour) in enumerate(
        (("probability", probability, OKABE_ITO[0]), ("rank", rank, OKABE_ITO[5])), start=1
    ):
        hover = f"after %{{x}}<br>{name} <b>%{{y:.7g}}</b><extra></extra>"
        draft.add_scatter(
            x=x, y=values, mode="lines+markers", name=name, line_color=colour, hovertemplate=hover, row=row, col=1
        )
    layout(draft, max(80 + 40 * len(steps), SIDE), "", "")
    draft.update_annotations(x=0, xanchor="left", font_size=14)
    draft.update_layout(showlegend=False, margin={"t": 30})
    draft.update_xaxes(showgrid=False, tickangle=-45, type="category")
    draft.update_yaxes(range=[-0.03, 1.03], row=1)
    powers = [10**n for n in range(len(str(vocabulary))) if 10**n <= vocabulary]
    return draft.update_yaxes(
        type="log",
        range=[np.log10(vocabulary * 1.3), -0.12],
        tickvals=powers,
        ticktext=[f"{n:,}" for n in powers],
        row=2,
    ).figure()


def lens_map(
    probability: Array, rank: Array, steps: Sequence[str], names: tuple[Sequence[str], Sequence[str]], chosen: int
) -> go.Figure:
    """Probability of each row's finally predicted token, all rows: a row a decoder position, a column a step.

    `names` are those of the rows, plain text, and the pieces that they finally predict, for the ticks.
    """
    rows, predicted = names
    followed = [html.escape(label) for label in labels(predicted)]
    draft = Draft().add_heatmap(
        z=np.ascontiguousarray(probability, dtype=np.float32),
        customdata=rank,
        text=[[f"{html.escape(row)}<br>finally: {f}"] * len(steps) for row, f in zip(rows, followed, strict=True)],
        x=list(steps),
        xgap=1,
        ygap=1 if len(rows) <= 30 else 0,
        colorscale=WEIGHTS,
        zmin=0,
        zmax=1,
        colorbar={"title": {"text": "probability<br>0 to 1"}, "thickness": 12},
        hovertemplate="row %{text}<br>after %{x}<br>probability <b>%{z:.7g}</b>, rank %{customdata}<extra></extra>",
    )
    frame = {"x0": -0.5, "x1": len(steps) - 0.5, "y0": chosen - 0.5, "y1": chosen + 0.5}
    draft.add_shape(type="rect", **frame, line={"color": OKABE_ITO[5], "width": 2})
    cells = min(max(20 * len(rows), 110), 480)
    shown, _ = ticks(rows)
    layout(draft, cells + 130, "", "")
    draft.update_xaxes(showgrid=False, zeroline=False, tickangle=-45, type="category")
    draft.update_layout(margin={"t": 10, "b": 100})
    return draft.update_yaxes(
        tickvals=shown,
        ticktext=[f"{i} {followed[i]}" for i in shown],
        autorange="reversed",
        showgrid=False,
        zeroline=False,
        automargin=True,
    ).figure()


def neuron_chart(hidden: Array, top: Array) -> go.Figure:
    """The hidden activations of a feed-forward at one token, those that write most in another colour and shape.

    Args:
        hidden: (d_ff,).
        top: neurons to emphasise.
    """
    draft = Draft().add_bar(
        x=np.arange(len(hidden)),
        y=hidden,
        width=max(len(hidden) / 400, 0.8),
        name="all neurons",
        marker={"color": OKABE_ITO[0], "line": {"width": 0}},
        hovertemplate="neuron %{x}<br>activation <b>%{y:.7g}</b><extra></extra>",
    )
    draft.add_scatter(
        x=top,
        y=hidden[top],
        mode="markers",
        name="those that write most, in the table",
        marker={"color": OKABE_ITO[5], "symbol": "diamond", "size": 9},
        hovertemplate="neuron %{x}<br>activation <b>%{y:.7g}</b><extra></extra>",
    )
    layout(draft, 260, "neuron", "activation h")
    draft.update_layout(legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}, margin={"t": 40})
    draft.update_xaxes(range=[-0.5 - len(hidden) / 100, len(hidden) * 1.01], showgrid=False, zeroline=False)
    return draft.update_yaxes(zeroline=True).figure()


def neuron_table(
    top: Array, hidden: Array, written: Array, promoted: Sequence[Sequence[str]], gains: Array
) -> pd.DataFrame:
    """One line a neuron.

    Args:
        top: (k,) neurons.
        hidden: (d_ff,) activations.
        written: (d_ff,) lengths of what each writes.
        promoted: (k, pieces) pieces whose logits it raises most.
        gains: (k, pieces) by how much.
    """
    said = [
        "   ".join(f"{label} {gain:+.2f}" for label, gain in zip(labels(pieces), row, strict=True))
        for pieces, row in zip(promoted, gains, strict=True)
    ]
    return pd.DataFrame(
        {"neuron": top, "activation h": hidden[top], "writes ‖h w‖": written[top], "raises the logits of": said}
    )


def path_table(measures: Mapping[str, Array], steps: Sequence[str], rows: Sequence[str]) -> pd.DataFrame:
    """One line a token and step, tokens first; where a step has no such number the cell is empty."""
    table = {"token": np.repeat(np.array(rows, dtype=object), len(steps)), "step": [*steps] * len(rows)}
    return pd.DataFrame(table | {name: values.ravel() for name, values in measures.items()})
