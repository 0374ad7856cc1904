"""Figures of Since 2017 that are no form: a rotated pair, the length of the residual stream, neurons, shared heads."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from model.language import sentence
from viz.figure import LEGEND_ABOVE, NO_GRID, curve, escape, figure, grid, hline, scatter
from viz.forms import TALLEST_BELOW_CONTROLS
from viz.labels import say_label
from viz.latex import signed
from viz.theme import CHOSEN, GUIDE, KEY, OKABE_ITO, QUERY, SIGNED, Array, flat_bar
from viz.tokens import axis_ticks

OWN, OTHER = OKABE_ITO[0], OKABE_ITO[5]
"""the model's own part, and the one beside it"""
NUMBERED = 5
"""neurons that have their number written beside them"""
LINES = {"mode": "lines", "line": {"color": "rgba(128, 132, 149, 0.45)", "width": 1}, "hoverinfo": "skip"}


def rotation_plane(
    q: Array, k: Array, angles: Sequence[float], names: Sequence[str], dimensions: tuple[int, int]
) -> go.Figure:
    """One pair of dimensions of a query and a key, before the rotation (dotted) and after it, with the arcs.

    Args:
        q: (2, 2), before and after.
        k: (2, 2), before and after.
        angles: of the query and of the key, in radians.
        names: of the query's and the key's token, plain text.
        dimensions: of the pair.
    """
    traces = []
    for vectors, angle, name, letter, colour in zip((q, k), angles, escape(names), "qk", (QUERY, KEY), strict=True):
        before, after = vectors
        start = np.arctan2(before[1], before[0])
        turned = start + np.linspace(0, np.sign(angle) * (abs(angle) % (2 * np.pi)), 60)
        radius = 0.55 * np.hypot(*before)
        hover = sentence("{letter} of {token}<br>%{{x:.7g}}, %{{y:.7g}}", letter=letter, token=name)
        traces += [
            scatter(
                x=radius * np.cos(turned),
                y=radius * np.sin(turned),
                mode="lines",
                line={"color": colour, "width": 1.5},
                opacity=0.5,
                showlegend=False,
            ),
            *(
                curve(
                    [0, x],
                    [0, y],
                    f"{letter} {when}",
                    colour,
                    dash=dash,
                    width=width,
                    mode="lines+markers",
                    marker={"size": [0, size], "symbol": symbol, "opacity": 1, "line": {"width": 2, "color": colour}},
                    hover=hover,
                )
                for (x, y), when, dash, width, size, symbol in (
                    (before, "before", "dot", 2, 9, "circle-open"),
                    (after, "after", "solid", 3, 11, "circle"),
                )
            ),
        ]
    end = 1.08 * max(float(np.hypot(*vectors[0])) for vectors in (q, k)) or 1.0
    axis = {"range": [-end, end], "zeroline": True, "showgrid": False, "constrain": "domain", "nticks": 5}
    return figure(
        traces,
        height=430,
        showlegend=True,
        legend=LEGEND_ABOVE,
        xaxis=axis | {"title": f"dimension {dimensions[0]}"},
        yaxis=axis | {"title": f"dimension {dimensions[1]}", "scaleanchor": "x"},
    )


def stream_chart(
    lengths: Array, added: Array, share: Array, steps: Sequence[str], position: int, post: bool
) -> go.Figure:
    """Length of the residual stream after every sub-layer, and how much of it is new: all tokens, one emphasised.

    Args:
        lengths: (position, step), of the stream after the step; the first step is the input.
        added: (position, step), before the norm that follows the sum.
        share: (position, step), 0 to 1: the sub-layer's share in the sum.
        steps: names of the steps.
        position: the emphasised token.
        post: whether a norm follows the sum.
    """
    x = np.arange(len(steps))
    others = [p for p in range(len(lengths)) if p != position]
    joined = np.append(x, np.nan)

    def background(values: Array, panel: int) -> dict:
        y = np.concatenate([np.append(values[p], np.nan) for p in others] or [[np.nan]])
        name = "other tokens"
        return scatter(
            x=np.tile(joined, max(len(others), 1))[: len(y)],
            y=y,
            panel=panel,
            name=name,
            showlegend=panel == 1,
            **LINES,
        )

    ticks = "D2" if np.nanmax(lengths) < 30 * max(np.nanmin(lengths), 1e-30) else 1
    hover = "<b>%{y:.7g}</b><br>%{customdata}"
    column = {"x": x, "customdata": list(map(say_label, steps))}
    traces = [background(lengths, 1), background(share, 2)]
    if post:
        sums = {"y": added[position], "name": "‖x + Sublayer(x)‖, before the norm", "colour": OTHER, "dash": "dot"}
        traces.append(curve(**column, **sums, symbol="diamond", hover=f"before the norm {hover}"))
    traces += [
        curve(**column, y=lengths[position], name="‖x‖, this token", colour=OWN, symbol="circle", hover=hover),
        curve(
            **column,
            y=share[position],
            name="share of the sub-layer, this token",
            colour=OKABE_ITO[2],
            symbol="square",
            panel=2,
            hover=f"share {hover}",
        ),
    ]
    return figure(
        traces,
        grid(2, shared_xaxes=True, vertical_spacing=0.08, row_heights=[0.6, 0.4]),
        {"xaxis2": axis_ticks(steps, len(steps)) | {"tickangle": -45, "title": "after layer and sub-layer"}},
        height=TALLEST_BELOW_CONTROLS,
        margin={"t": 50, "b": 104},
        legend=LEGEND_ABOVE,
        yaxis={"title": "length (log)", "type": "log", "dtick": ticks, "exponentformat": "none", "tickformat": ",~g"},
        yaxis2={"title": "share of the sum", "range": [0, 1.05], "tickvals": [0, 0.5, 1]},
        shapes=[hline(0.5, panel=2)],
    )


def activation_chart(curve_points: Array, z: Array, activated: Array, top: Array, names: tuple[str, str]) -> go.Figure:
    """An activation function with every neuron of a token on it.

    Args:
        curve_points: (2, point), z and act(z).
        z: (d_ff,)
        activated: (d_ff,), act(z) of the run.
        top: (k,), the neurons to emphasise, largest first.
        names: of the function, and of what the emphasised neurons have.
    """
    hover = "neuron %{customdata}<br>z <b>%{x:.7g}</b><br>act(z) <b>%{y:.7g}</b>"
    return figure(
        [
            curve(*curve_points, names[0], GUIDE, width=1.5),
            scatter(
                x=z,
                y=activated,
                customdata=np.arange(len(z)),
                mode="markers",
                name="neurons of this token",
                marker={"color": OWN, "size": 5, "opacity": 0.5},
                hover=hover,
            ),
            _top_neurons(z, activated, top, hover, names[1]),
        ],
        height=430,
        showlegend=True,
        legend=LEGEND_ABOVE,
        xaxis={"title": "z, what the activation reads", "zeroline": True},
        yaxis={"title": "act(z)", "zeroline": True},
    )


def gate_chart(gate: Array, up: Array, top: Array) -> go.Figure:
    """Gate and up of every neuron; the colour is their product, in a range that the bar states.

    The range ends at the smallest product of `top`: a few neurons have products so large that the others would be pale.

    Args:
        gate: (d_ff,), act(x W_gate).
        up: (d_ff,), x W_1.
        top: (k,), the neurons to emphasise, largest first.
    """
    product = gate * up
    end = float(min(np.abs(product[top]), default=0)) or 1.0
    ticks = {"tickvals": [-end, 0, end], "ticktext": [f"≤ −{signed(end)}", "0", f"≥ {signed(end)}"]}
    hover = "neuron %{customdata}<br>gate <b>%{x:.7g}</b><br>up <b>%{y:.7g}</b>"
    marker = {"color": product, "coloraxis": "coloraxis", "size": 8, "line": {"width": 0.5, "color": GUIDE}}
    return figure(
        [
            scatter(
                x=gate,
                y=up,
                customdata=np.arange(len(gate)),
                mode="markers",
                marker=marker,
                hover=f"{hover}<br>product <b>%{{marker.color:.7g}}</b>",
                showlegend=False,
            ),
            _top_neurons(gate, up, top, hover, "the largest products"),
        ],
        height=430,
        margin={"t": 70},
        coloraxis={"colorscale": SIGNED, "cmin": -end, "cmax": end, "colorbar": flat_bar("gate × up") | ticks},
        xaxis={"title": "gate, act(x W_gate)", "zeroline": True},
        yaxis={"title": "up, x W₁", "zeroline": True},
        showlegend=False,
    )


def _top_neurons(x: Array, y: Array, top: Array, hover: str, name: str) -> dict:
    """Rings around some neurons; the first ones have their number beside them, left and right by turns upwards."""
    upwards = np.argsort(np.argsort(y[top[:NUMBERED]]))
    sides = ["middle left" if rank % 2 else "middle right" for rank in upwards]
    return scatter(
        x=x[top],
        y=y[top],
        customdata=top,
        text=[str(neuron) if rank < NUMBERED else "" for rank, neuron in enumerate(top)],
        mode="markers+text",
        textposition=sides + ["middle right"] * (len(top) - len(sides)),
        textfont={"size": 11},
        cliponaxis=False,
        name=name,
        marker={"color": CHOSEN, "size": 11, "symbol": "circle-open", "line": {"width": 2}},
        hover=hover,
    )


def sharing_chart(kv_head: Sequence[int], head: int) -> go.Figure:
    """Which key/value head each query head reads: a line from each to its own.

    Args:
        kv_head: (heads,)
        head: the chosen query head.
    """
    heads, shared = np.arange(len(kv_head)), np.asarray(kv_head)
    places = np.array([heads[shared == kv].mean() for kv in range(shared.max() + 1)])
    x = np.stack([heads, places[shared], np.full(len(heads), np.nan)], -1).ravel()
    size = min(28, max(14, 190 / len(heads)))
    """in pixels: on a phone the marks of a row must not touch"""
    marks = {"mode": "markers+text", "textfont": {"color": "white", "size": min(13, size * 0.6)}, "showlegend": False}
    return figure(
        [
            scatter(
                x=x,
                y=np.tile([1, 0, np.nan], len(heads)),
                mode="lines",
                line={"color": GUIDE, "width": 1.5},
                showlegend=False,
            ),
            scatter(
                x=heads,
                y=np.ones(len(heads)),
                text=[str(h) for h in heads],
                customdata=shared,
                marker={
                    "color": QUERY,
                    "size": size,
                    "line": {"width": [3 if h == head else 0 for h in heads], "color": OKABE_ITO[1]},
                },
                hover="query head %{text} reads the keys and values of head %{customdata}",
                **marks,
            ),
            scatter(
                x=places,
                y=np.zeros(len(places)),
                text=[str(kv) for kv in range(len(places))],
                marker={"color": KEY, "size": size, "symbol": "square"},
                hover="key/value head %{text}",
                **marks,
            ),
        ],
        height=260,
        margin={"t": 10, "b": 10},
        xaxis={"visible": False, "range": [-0.7, len(heads) - 0.3]},
        yaxis=NO_GRID | {"tickvals": [0, 1], "ticktext": ["keys and<br>values", "queries"], "range": [-0.5, 1.5]},
    )
