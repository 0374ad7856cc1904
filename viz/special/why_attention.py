"""Figure of Why attention: the path between two tokens in four kinds of layer (paper, section 4)."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import plotly.graph_objects as go

from viz.figure import NO_GRID, TITLE_LEFT, escape, figure, grid, merge, scatter, suffix
from viz.theme import GUIDE, OKABE_ITO
from viz.tokens import labels, token_ticks

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
MOST_EDGES = 1500


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
            vertical_spacing=0.09,
            row_heights=[0.2 if name == RECURRENT else 1 for name in paths],
            xaxis={"range": [-0.6, len(pieces) - 0.4], "tickvals": []},
            yaxis=NO_GRID,
        ),
        merge(axes, last),
        height=410,
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
