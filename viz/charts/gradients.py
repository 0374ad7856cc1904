"""Figures of Gradients: norms along the residual stream, the softmax's Jacobian, distance, and removed tokens."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from viz.bars import position_chart
from viz.figure import (
    LEGEND_ABOVE,
    NO_GRID,
    TITLE_LEFT,
    curve,
    escape,
    figure,
    grid,
    heatmap,
    hline,
    suffix,
    text,
    vline,
)
from viz.heatmap import cells_height, signed_axis, slanted_room
from viz.theme import CHOSEN, OKABE_ITO, symmetric_range
from viz.tokens import axis_ticks, labels

Array = np.ndarray

LOOKS = (
    (OKABE_ITO[0], "solid", "circle"),
    (OKABE_ITO[1], "dash", "square"),
    (OKABE_ITO[2], "dot", "diamond"),
    (OKABE_ITO[3], "dashdot", "x"),
    ("#999999", "dot", "cross"),
)
"""Colour, dash and marker of the runs, and of the measures with random orders last."""


def stream_chart(steps: Mapping[str, Sequence[str]], norms: Mapping[str, Mapping[str, Array]]) -> go.Figure:
    """Norm of the gradient along each stack's residual stream, a curve a run; the loss is at the right end.

    Args:
        steps: names of the steps by stack; a panel each.
        norms: by run and stack, (step,).
    """
    traces = [
        curve(
            list(range(len(steps[stack]))),
            values,
            run,
            colour,
            dash=dash,
            symbol=symbol,
            panel=panel,
            showlegend=panel == 1,
            legendgroup=run,
            customdata=steps[stack],
            hover=f"<b>%{{y:.4g}}</b><br>{stack}, %{{customdata}}<br>{run}",
        )
        for panel, stack in enumerate(steps, start=1)
        for (run, of_stack), (colour, dash, symbol) in zip(norms.items(), LOOKS, strict=False)
        for values in (of_stack[stack],)
    ]
    axes = {}
    for panel, (stack, names) in enumerate(steps.items(), start=1):
        axes[f"xaxis{suffix(panel)}"] = axis_ticks(names) | {"tickangle": -45}
        axes[f"yaxis{suffix(panel)}"] = _log_axis(np.stack([of_stack[stack] for of_stack in norms.values()]))
    height = 250 * len(steps)
    return figure(
        traces,
        grid(
            len(steps),
            1,
            [f"<b>{stack.title()}</b>: ‖∂L/∂x‖ after each sub-layer" for stack in steps],
            TITLE_LEFT,
            vertical_spacing=130 / height,
        ),
        axes,
        height=height + 130,
        legend=LEGEND_ABOVE | {"y": 1 + 34 / height},
        margin={"t": 80, "b": 90},
    )


def _log_axis(values: Array) -> dict:
    """A logarithmic axis, with ticks between the powers of ten only where there are few of these."""
    some = values[values > 0]
    wide = some.size and some.max() > 100 * some.min()
    return {"type": "log", "exponentformat": "power", "title": "norm (log)"} | (
        {"nticks": 5} if wide else {"dtick": "D2", "minorloglabels": "complete"}
    )


def jacobian_map(matrix: Array, keys: Sequence[str]) -> go.Figure:
    """diag(p) - p p^T of one row, in colours up to its largest element, which is at most 1/4.

    Args:
        matrix: (key, key).
        keys: names of the keys, plain text and unique.
    """
    names = escape(keys)
    axis = axis_ticks(keys) | {"type": "category", "constrain": "domain"}
    return figure(
        [
            heatmap(
                z=matrix.astype(np.float32),
                x=names,
                y=names,
                coloraxis="coloraxis",
                hover="<b>%{z:.7g}</b><br>weight on %{y}<br>score of %{x}",
            )
        ],
        coloraxis=signed_axis(symmetric_range(matrix)),
        height=210 + slanted_room(keys) + cells_height(len(names), 420, 24),
        xaxis=axis | {"tickangle": -60, "title": "score that changes"},
        yaxis=axis | NO_GRID | {"autorange": "reversed", "title": "weight that answers"},
    )


def jacobian_curves(taus: Array, largest: Array, frobenius: Array, tau: float, undivided: float | None) -> go.Figure:
    """Size of the Jacobian over temperature.

    Args:
        taus: (tau,), on a logarithmic axis.
        largest: (tau,) largest eigenvalue.
        frobenius: (tau,) Frobenius norm.
        tau: the chosen temperature.
        undivided: the temperature that undoes the division by sqrt(d_k); None: the model does not divide.
    """
    marks = {tau: (f"chosen: τ = {tau:g}", CHOSEN, "left")}
    if undivided is not None:
        marks[undivided] = ("not divided by √d_k", OKABE_ITO[2], "right")
    ticks = [0.01, 0.1, 1, 10, 100]
    places = {"y": 1, "yref": "paper", "yanchor": "bottom"}
    return figure(
        [
            curve(taus, values, name, colour, dash=dash, hover=f"{name} <b>%{{y:.5g}}</b><br>τ = %{{x:.3g}}")
            for name, values, (colour, dash, _) in (
                ("largest eigenvalue", largest, LOOKS[0]),
                ("Frobenius norm", frobenius, LOOKS[1]),
            )
        ],
        height=400,
        legend=LEGEND_ABOVE | {"y": 1.1},
        xaxis={"title": "temperature τ (logarithmic)", "type": "log", "tickvals": ticks}
        | {"ticktext": [f"{tick:g}" for tick in ticks]},
        yaxis={"title": "size of diag(p) − p pᵀ", "rangemode": "tozero"},
        shapes=[vline(at, color=colour, width=1.5, dash="solid") for at, (_, colour, _) in marks.items()],
        annotations=[text(name, x=math.log10(at), xanchor=side, **places) for at, (name, _, side) in marks.items()],
    )


def distance_chart(distances: Array, norms: Array, pairs: Array) -> go.Figure:
    """Mean norm of the gradient of one row's loss at a token, over the distance between the two.

    Args:
        distances: (distance,)
        norms: (distance,)
        pairs: (distance,) how many pairs of a row and a token the mean is over.
    """
    hover = "<b>%{y:.4g}</b><br>distance %{x}, %{customdata} pairs"
    line = curve(distances, norms, "this model", LOOKS[0][0], symbol="circle", customdata=pairs, hover=hover)
    return figure(
        [line],
        height=380,
        xaxis={"title": "steps between reading and predicting"},
        yaxis=_log_axis(norms),
        showlegend=False,
        margin={"t": 40},
    )


def measure_bars(tokens: Sequence[str], shares: Mapping[str, Array]) -> go.Figure:
    """What each token mattered by several measures, each with sum 1.

    Args:
        tokens: pieces.
        shares: (token,) by measure.
    """
    shapes = ("", "/", "x", ".")
    series = {
        name: (values, {"color": colour, "pattern": {"shape": shape}})
        for (name, values), (colour, *_), shape in zip(shares.items(), LOOKS, shapes, strict=False)
    }
    return position_chart(labels(tokens), series, 360, ("token read", "share"), what="token")


def removal_chart(shares: Sequence[float], curves: Mapping[str, Array]) -> go.Figure:
    """log p of the predicted token while tokens are deleted, and while they are put back, largest first.

    Args:
        shares: of the tokens, 0 to 1.
        curves: by measure, (2, share) in nats: deletion, insertion.
    """
    traces = [
        curve(
            list(shares),
            values[panel - 1],
            name,
            colour,
            dash=dash,
            symbol=symbol,
            panel=panel,
            legendgroup=name,
            showlegend=panel == 1,
            hover=f"log p <b>%{{y:.4f}}</b><br>%{{x:.0%}} of the tokens<br>{name}",
        )
        for panel in (1, 2)
        for (name, values), (colour, dash, symbol) in zip(curves.items(), LOOKS, strict=True)
    ]
    return figure(
        traces,
        grid(
            1,
            2,
            ["Deletion: lower is better", "Insertion: higher is better"],
            {"font": {"size": 14}},
            xaxis={"tickformat": ".0%"},
            yaxis={"matches": "y"},
            horizontal_spacing=0.1,
        ),
        height=400,
        xaxis={"title": "tokens deleted"},
        xaxis2={"title": "tokens put back"},
        yaxis={"title": "log p, nats"},
        legend={"orientation": "h", "y": -0.3, "yanchor": "top", "x": 0},
        margin={"t": 40},
        shapes=[hline(0, panel) for panel in (1, 2)],
    )
