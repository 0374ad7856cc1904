"""Table 1 of the paper (section 4) as curves and as a table, and the ways that information takes, drawn."""

import html
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from viz.charts.model_card import LINE
from viz.figure import Draft, grid
from viz.theme import OKABE_ITO, layout
from viz.tokens import ticks

Array = np.ndarray
Node = tuple[int, int]

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
"""Colour and stroke of each kind of layer, in the paper's order"""
ORDERS: Mapping[str, tuple[str, str, str]] = {
    ATTENTION: ("O(n² · d)", "O(1)", "O(1)"),
    RECURRENT: ("O(n · d²)", "O(n)", "O(n)"),
    CONVOLUTIONAL: ("O(k · n · d²)", "O(1)", "O(logₖ n)"),
    RESTRICTED: ("O(r · n · d)", "O(1)", "O(n / r)"),
}
"""Table 1 as printed: complexity per layer, sequential operations, maximum path length"""
MOST_EDGES = 1500


def operations_chart(lengths: Array, curves: Mapping[str, Array], here: Mapping[str, int], n: int, d: int) -> go.Figure:
    """Operations per layer over the sentence's length, both axes logarithmic.

    Args:
        lengths: (length,)
        curves: (length,) by name, in the order of LOOKS.
        here: operations at the current sentence's length, by name.
        n: tokens of the current sentence.
        d: the layers' width, where self-attention meets recurrence.
    """
    draft = Draft()
    for name, (colour, dash) in LOOKS.items():
        said = f"<b>%{{y:,.0f}}</b> operations<br>{name}, {ORDERS[name][0]}<br>at n = %{{x:,}}<extra></extra>"
        line = {"color": colour, "width": 3, "dash": dash}
        curve = {"y": curves[name].astype(float), "mode": "lines", "line": line, "name": name}
        point = {"y": [float(here[name])], "mode": "markers", "marker": {"color": colour, "size": 10}}
        draft.add_scatter(x=lengths, **curve, hovertemplate=said)
        draft.add_scatter(x=[n], **point, hovertemplate=said, showlegend=False)
    _mark(draft, n, f"your sentence: n = {n}", 0.03, "left" if n < lengths[-1] ** 0.5 else "right")
    _mark(draft, d, f"n = d = {d}", 0.11 if n < d else 0.22, "left")
    draft.add_scatter(
        x=[d],
        y=[float(d) ** 3],
        mode="markers",
        marker={"symbol": "circle-open", "size": 16, "color": LINE, "line": {"width": 3}},
        hovertemplate="<b>%{y:,.0f}</b> operations<br>n² d = n d² at n = d = %{x:,}<extra></extra>",
        showlegend=False,
    )
    layout(draft, 430, "tokens n (log)", "operations per layer (log)")
    draft.update_xaxes(type="log", range=[0, np.log10(lengths[-1])], dtick=1, tickformat=",", zeroline=False)
    draft.update_yaxes(type="log", dtick=1, exponentformat="SI", zeroline=False)
    draft.update_layout(legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0})
    return draft.figure()


def _mark(draft: Draft, at: int, text: str, y: float, side: str) -> None:
    """A dotted line; the label stands on its `side`, an annotation on a log axis by its logarithm."""
    draft.add_vline(at, line={"color": LINE, "width": 1, "dash": "dot"})
    place = {"x": np.log10(at), "xanchor": side, "align": side, "y": y, "yref": "y domain", "yanchor": "bottom"}
    place["xshift"] = 6 if side == "left" else -6
    draft.add_annotation(text=text, showarrow=False, font_size=12, **place)


def table(costs: Mapping[str, tuple[int, int, float]]) -> pd.DataFrame:
    """Table 1 with the paper's orders, and beside each the number for this n and d.

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


def times_apart(ours: int, theirs: int) -> str:
    """How two costs compare, in words: "15.1 times fewer operations than"."""
    if ours == theirs:
        return "as many operations as"
    factor = theirs / ours if ours < theirs else ours / theirs
    return f"{factor:.3g} times {'fewer' if ours < theirs else 'more'} operations than"


def path_chart(
    pieces: Sequence[str], paths: Mapping[str, list[Node]], reads: Mapping[str, list[list[int]]]
) -> go.Figure:
    """One panel a kind of layer: tokens along the bottom, layers upwards, the way from one token to another bold.

    Args:
        pieces: tokens.
        paths: nodes of the way, from the first token to the second, by name in the order of LOOKS.
        reads: by name; of each layer, from the first, how far left (negative) or right a position looks.
    """
    steps = {name: len(nodes) - 1 for name, nodes in paths.items()}
    draft = grid(
        len(paths),
        1,
        shared_xaxes=True,
        vertical_spacing=0.08,
        row_heights=[0.2 if name == RECURRENT else 1 for name in paths],
        titles=[f"{name}: {count(steps[name], name)}" for name in paths],
    )
    for row, (name, nodes) in enumerate(paths.items(), start=1):
        _panel(draft, row, pieces, nodes, reads.get(name, []), LOOKS[name])
    layout(draft, 660, "", "")
    draft.update_layout(showlegend=False, margin={"l": 64, "r": 20, "t": 30, "b": 90}, hovermode="closest")
    draft.update_annotations(x=0, xanchor="left", font_size=14)
    shown, names = ticks(pieces)
    draft.update_xaxes(showgrid=False, zeroline=False, range=[-0.6, len(pieces) - 0.4], tickvals=[])
    draft.update_xaxes(tickvals=shown, ticktext=names, tickangle=-60, showticklabels=True, row=len(paths), col=1)
    draft.update_yaxes(showgrid=False, zeroline=False)
    return draft.figure()


def count(steps: int, name: str) -> str:
    """ "11 steps, one after another", "1 layer"."""
    if name == RECURRENT:
        return "1 step" if steps == 1 else f"{steps} steps, one after another"
    return f"{steps} layer{'' if steps == 1 else 's'}"


def cone(reads: Sequence[Sequence[int]], end: Node, n: int) -> list[tuple[Node, Node]]:
    """Every edge through which the node `end` reads the input, top layer first."""
    edges, seen = [], {end[1]}
    for level in range(end[0], 0, -1):
        found = [(p, p + step) for p in sorted(seen) for step in reads[level - 1] if 0 <= p + step < n]
        edges += [((level, upper), (level - 1, lower)) for upper, lower in found]
        seen = {lower for _, lower in found}
    return edges


def _panel(
    draft: Draft,
    row: int,
    pieces: Sequence[str],
    nodes: list[Node],
    reads: Sequence[Sequence[int]],
    look: tuple[str, str],
) -> None:
    n, top = len(pieces), max(level for level, _ in nodes)
    edges = cone(reads, nodes[-1], n) if top else [((0, p), (0, p + 1)) for p in range(n - 1)]
    if len(edges) <= MOST_EDGES:
        _lines(draft, row, edges, {"color": LINE, "width": 1}, 0.45)
    _lines(draft, row, list(pairwise(nodes)), {"color": look[0], "width": 4}, 1)
    levels = range(top + 1) if (top + 1) * n <= MOST_EDGES else (0, top)
    grid = [(level, position) for level in levels for position in range(n)]
    names = [html.escape(name) for name in ticks(pieces, n)[1]]
    _dots(draft, row, grid, names, {"color": LINE, "size": 5})
    _dots(draft, row, nodes, names, {"color": look[0], "size": 9})
    draft.update_yaxes(
        range=[-0.35, top + 0.35] if top else [-1, 1],
        tickvals=[0, top] if top else [0],
        ticktext=["input", f"layer {top}"] if top else ["state"],
        row=row,
        col=1,
    )


def _lines(draft: Draft, row: int, edges: Sequence[tuple[Node, Node]], line: dict, opacity: float) -> None:
    x = [value for (_, a), (_, b) in edges for value in (a, b, None)]
    y = [value for (a, _), (b, _) in edges for value in (a, b, None)]
    draft.add_scatter(x=x, y=y, mode="lines", line=line, opacity=opacity, hoverinfo="skip", row=row, col=1)


def _dots(draft: Draft, row: int, nodes: Sequence[Node], names: Sequence[str], marker: dict) -> None:
    draft.add_scatter(
        x=[position for _, position in nodes],
        y=[level for level, _ in nodes],
        customdata=[names[position] for _, position in nodes],
        mode="markers",
        marker=marker,
        hovertemplate="position %{x}: <b>%{customdata}</b><br>level %{y}<extra></extra>",
        row=row,
        col=1,
    )
