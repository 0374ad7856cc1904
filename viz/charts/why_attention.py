"""Figures of Why attention: Table 1 of the paper (section 4) as curves and as a table, and path lengths drawn."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from viz.charts.model_card import log_axes
from viz.figure import (
    LEGEND_ABOVE,
    NO_GRID,
    TITLE_LEFT,
    curve,
    escape,
    figure,
    grid,
    merge,
    scatter,
    suffix,
    text,
    vline,
)
from viz.theme import GUIDE, OKABE_ITO
from viz.tokens import labels, token_ticks

Array = np.ndarray
Node = tuple[int, int]
"""layer (0 is the input) and position"""

ATTENTION, RECURRENT, CONVOLUTIONAL, RESTRICTED = (
    "Self-attention",
    "Recurrent",
    "Convolutional",
    "Self-attention (restricted)",
)
LOOKS: Mapping[str, tuple[str, str]] = {
    ATTENTION: (OKABE_ITO[5], "solid"),
    RECURRENT: (OKABE_ITO[0], "dash"),
    CONVOLUTIONAL: (OKABE_ITO[2], "dot"),
    RESTRICTED: (OKABE_ITO[1], "dashdot"),
}
"""Colour and line style of each kind of layer, in the paper's order."""
ORDERS: Mapping[str, tuple[str, str, str]] = {
    ATTENTION: ("O(n² · d)", "O(1)", "O(1)"),
    RECURRENT: ("O(n · d²)", "O(n)", "O(n)"),
    CONVOLUTIONAL: ("O(k · n · d²)", "O(1)", "O(logₖ n)"),
    RESTRICTED: ("O(r · n · d)", "O(1)", "O(n / r)"),
}
"""Table 1 as printed: complexity per layer, sequential operations, maximum path length."""
MOST_EDGES = 1500


def operations_chart(lengths: Array, curves: Mapping[str, Array], here: Mapping[str, int], n: int, d: int) -> go.Figure:
    """Operations per layer over the sentence length, both axes logarithmic.

    Args:
        lengths: (length,)
        curves: (length,) by name, in the order of LOOKS.
        here: operations at the current sentence's length, by name.
        n: tokens of the current sentence.
        d: the layers' width; self-attention and recurrence cost the same at n = d.
    """
    traces = []
    for name, (colour, dash) in LOOKS.items():
        hover = f"<b>%{{y:,.0f}}</b> operations<br>{name}, {ORDERS[name][0]}<br>at n = %{{x:,}}"
        dot = {"mode": "markers", "marker": {"color": colour, "size": 10}, "showlegend": False}
        traces.append(curve(lengths, curves[name].astype(float), name, colour, dash=dash, width=3, hover=hover))
        traces.append(scatter(x=[n], y=[float(here[name])], hover=hover, **dot))
    crossing = scatter(
        x=[d],
        y=[float(d) ** 3],
        mode="markers",
        marker={"symbol": "circle-open", "size": 16, "color": GUIDE, "line": {"width": 3}},
        hover="<b>%{y:,.0f}</b> operations<br>n² d = n d² at n = d = %{x:,}",
        showlegend=False,
    )
    return figure(
        [*traces, crossing],
        log_axes(lengths),
        height=430,
        legend=LEGEND_ABOVE,
        xaxis={"title": "tokens n (log)"},
        yaxis={"title": "operations per layer (log)"},
        shapes=[vline(n), vline(d)],
        annotations=[
            _label(n, f"your sentence: n = {n}", 0.03, "left" if n < lengths[-1] ** 0.5 else "right"),
            _label(d, f"n = d = {d}", 0.11 if n < d else 0.22, "left"),
        ],
    )


def _label(at: int, words: str, height: float, side: str) -> dict:
    """An annotation beside the vertical line at `at`; `height` is a share of the panel's."""
    place = {"x": np.log10(at), "y": height, "yref": "y domain", "yanchor": "bottom"}
    return text(words, xanchor=side, align=side, xshift=6 if side == "left" else -6, font={"size": 12}, **place)


def layer_cost_table(costs: Mapping[str, tuple[int, int, float]]) -> pd.DataFrame:
    """Table 1 with the paper's orders of growth and the numbers for this n and d.

    Args:
        costs: operations, sequential operations and path length, by name.
    """
    printed = [ORDERS[name] for name in costs]
    operations, sequential, path = zip(*costs.values(), strict=True)
    return pd.DataFrame(
        {
            "layer": list(costs),
            "complexity per layer": [orders[0] for orders in printed],
            "operations here": list(operations),
            "sequential operations": [orders[1] for orders in printed],
            "sequential here": list(sequential),
            "maximum path length": [orders[2] for orders in printed],
            "path here": [round(length, 2) for length in path],
        }
    )


def compare_costs(ours: int, theirs: int) -> str:
    """Two costs compared in words: "15.1 times fewer operations than"."""
    if ours == theirs:
        return "as many operations as"
    factor = theirs / ours if ours < theirs else ours / theirs
    return f"{factor:.3g} times {'fewer' if ours < theirs else 'more'} operations than"


def path_chart(
    pieces: Sequence[str], paths: Mapping[str, list[Node]], reads: Mapping[str, list[list[int]]]
) -> go.Figure:
    """A panel for each kind of layer: tokens along the bottom, layers upwards, the path between two tokens bold.

    Args:
        pieces: tokens.
        paths: nodes of the path, from the first token to the second, by name in the order of LOOKS.
        reads: by name; for each layer, from the first, the offsets at which a position reads, left ones negative.
    """
    traces, axes = [], {}
    for panel, (name, nodes) in enumerate(paths.items(), start=1):
        traces += _path_traces(panel, pieces, nodes, reads.get(name, []), LOOKS[name][0])
        top = max(level for level, _ in nodes)
        axes[f"yaxis{suffix(panel)}"] = {
            "range": [-0.35, top + 0.35] if top else [-1, 1],
            "tickvals": [0, top] if top else [0],
            "ticktext": ["input", f"layer {top}"] if top else ["state"],
        }
    last = {f"xaxis{suffix(len(paths))}": token_ticks(pieces) | {"tickangle": -60, "showticklabels": True}}
    return figure(
        traces,
        grid(
            len(paths),
            1,
            [f"{name}: {path_length(len(nodes) - 1, name)}" for name, nodes in paths.items()],
            TITLE_LEFT,
            shared_xaxes=True,
            vertical_spacing=0.08,
            row_heights=[0.2 if name == RECURRENT else 1 for name in paths],
            xaxis={"range": [-0.6, len(pieces) - 0.4], "tickvals": []},
            yaxis=NO_GRID,
        ),
        merge(axes, last),
        height=660,
        showlegend=False,
        margin={"l": 64, "r": 20, "t": 30, "b": 90},
        hovermode="closest",
    )


def path_length(steps: int, name: str) -> str:
    """ "11 steps, one after another", "1 layer"."""
    if name == RECURRENT:
        return "1 step" if steps == 1 else f"{steps} steps, one after another"
    return f"{steps} layer{'' if steps == 1 else 's'}"


def receptive_edges(reads: Sequence[Sequence[int]], end: Node, n: int) -> list[tuple[Node, Node]]:
    """Every edge by which the node `end` depends on the input, top layer first."""
    edges, frontier = [], {end[1]}
    for level in range(end[0], 0, -1):
        pairs = [(p, p + offset) for p in sorted(frontier) for offset in reads[level - 1] if 0 <= p + offset < n]
        edges += [((level, upper), (level - 1, lower)) for upper, lower in pairs]
        frontier = {lower for _, lower in pairs}
    return edges


def _path_traces(
    panel: int, pieces: Sequence[str], nodes: list[Node], reads: Sequence[Sequence[int]], colour: str
) -> list[dict]:
    n, top = len(pieces), max(level for level, _ in nodes)
    edges = receptive_edges(reads, nodes[-1], n) if top else [((0, p), (0, p + 1)) for p in range(n - 1)]
    levels = range(top + 1) if (top + 1) * n <= MOST_EDGES else (0, top)
    every = [(level, position) for level in levels for position in range(n)]
    names = escape(labels(pieces))
    thin = [_lines(panel, edges, {"color": GUIDE, "width": 1}, 0.45)] if len(edges) <= MOST_EDGES else []
    return [
        *thin,
        _lines(panel, list(pairwise(nodes)), {"color": colour, "width": 4}, 1),
        _dots(panel, every, names, {"color": GUIDE, "size": 5}),
        _dots(panel, nodes, names, {"color": colour, "size": 9}),
    ]


def _lines(panel: int, edges: Sequence[tuple[Node, Node]], line: dict, opacity: float) -> dict:
    x = [value for (_, a), (_, b) in edges for value in (a, b, None)]
    y = [value for (a, _), (b, _) in edges for value in (a, b, None)]
    return scatter(panel=panel, x=x, y=y, mode="lines", line=line, opacity=opacity)


def _dots(panel: int, nodes: Sequence[Node], names: Sequence[str], marker: dict) -> dict:
    return scatter(
        panel=panel,
        x=[position for _, position in nodes],
        y=[level for level, _ in nodes],
        customdata=[names[position] for _, position in nodes],
        mode="markers",
        marker=marker,
        hover="position %{x}: <b>%{customdata}</b><br>level %{y}",
    )
