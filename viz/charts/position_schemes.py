"""Other ways to say where a word stands (RoPE, ALiBi), and other orders of the words: before beside after.

Rows are queries, columns keys. A masked cell has no colour: it is hatched.
"""

import html
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from viz.charts.position_waves import LEGEND, LINE
from viz.figure import Draft, grid
from viz.heatmap import add_map, axes, scale
from viz.theme import OKABE_ITO, SIGNED, WEIGHTS, layout
from viz.tokens import numbered, ticks

Array = np.ndarray

DASHES = ("solid", "dash")
FOOT = 200
"""Pixels below and above the maps, for token names and colour bars."""


def beside(
    names: tuple[Sequence[str], Sequence[str]],
    mask: Array,
    scores: Mapping[str, Array],
    weights: Mapping[str, Array],
    limit: float = 1.0,
) -> go.Figure:
    """Maps of one head in two columns: the scores in one colour range, the weights below in another, 0 to 1.

    Args:
        names: of queries and keys, plain text.
        mask: bool (query, key), True = may look.
        scores: (query, key) by title, two or none.
        weights: (query, key) by title, two or four.
        limit: the largest magnitude of a score.
    """
    rows, keys = names
    maps = {**scores, **weights}
    lines = len(maps) // 2
    each = min(max(20 * len(rows), 110), 330)
    height = lines * (each + 60) + FOOT
    draft = grid(lines, 2, titles=list(maps), horizontal_spacing=0.03, vertical_spacing=60 / (height - FOOT))
    for number, (title, values) in enumerate(maps.items()):
        said, axis = ("score", "coloraxis") if title in scores else ("weight", "coloraxis2")
        add_map(draft, divmod(number, 2), names, (values, mask), f"{said} <b>%{{z:.7g}}</b>", {"coloraxis": axis})
    layout(draft, height, "", "").update_annotations(font_size=12)
    axes(draft, rows, keys)
    if lines > 1:
        draft.update_xaxes(showticklabels=False, row=1)
    bars = {"coloraxis2": _below(scale(WEIGHTS, 0, 1, "weight, 0 to 1", 0), 0.78 if scores else 0.5)}
    if scores:
        bars["coloraxis"] = _below(scale(SIGNED, -limit, limit, f"score, ±{limit:.3g}", 0), 0.22)
    return draft.update_layout(**bars, margin={"b": FOOT - 40}).figure()


def _below(axis: dict, x: float) -> dict:
    """The colour bar lies at the figure's foot, so that the maps have its whole width."""
    place = {"orientation": "h", "x": x, "xanchor": "center", "len": 0.4, "y": 0, "yref": "container"}
    return axis | {"colorbar": axis["colorbar"] | place | {"yanchor": "bottom", "thickness": 10}}


def offset_curve(offsets: Array, scores: Array, plain: float, here: int) -> go.Figure:
    """The score of one query and one key over the offset at which the key stands, the contents kept.

    Args:
        offsets: (offset,), n - m.
        scores: (offset,), after the rotation.
        plain: without a rotation, the same at every offset.
        here: the offset at which the two stand in the sentence.
    """
    draft = Draft()
    draft.add_hline(plain, line={"color": LINE, "width": 1.5, "dash": "dot"})
    place = {"x": 0.01, "xref": "x domain", "xanchor": "left", "y": plain, "yanchor": "bottom"}
    draft.add_annotation(text=f"not rotated: {plain:.4g}", showarrow=False, **place)
    hover = "offset %{x:+d}: <b>%{y:.7g}</b><extra></extra>"
    draft.add_scatter(
        x=offsets,
        y=scores,
        mode="lines+markers",
        marker={"size": 4},
        line={"color": OKABE_ITO[0], "width": 1.5},
        name="rotated",
        hovertemplate=hover,
    )
    ring = {"size": 14, "symbol": "circle-open", "color": OKABE_ITO[5], "line": {"width": 3}}
    draft.add_scatter(
        x=[here],
        y=scores[offsets == here],
        mode="markers",
        marker=ring,
        name=f"in your sentence: offset {here:+d}",
        hovertemplate=hover,
    )
    layout(draft, 320, "offset n − m (the key's position less the query's)", "score q · k")
    draft.update_xaxes(zeroline=False)
    draft.update_yaxes(zeroline=False)
    return draft.update_layout(showlegend=True, legend=LEGEND).figure()


def bias_map(bias: Array, limit: float) -> go.Figure:
    """ALiBi's bias of one head, (query, key), NaN where a cell is masked; `limit`: of the scores' colours."""
    hover = "query %{y}, key %{x}: <b>%{z:.7g}</b><extra></extra>"
    z = np.ascontiguousarray(bias, np.float32)
    draft = Draft().add_trace(
        {"type": "heatmap", "z": z, "coloraxis": "coloraxis", "hoverongaps": False, "hovertemplate": hover}
    )
    layout(draft, 340, "key", "query")
    draft.update_xaxes(showgrid=False, zeroline=False, constrain="domain")
    draft.update_yaxes(showgrid=False, zeroline=False, autorange="reversed", scaleanchor="x", constrain="domain")
    bar = scale(SIGNED, -limit, limit, f"score<br>±{limit:.3g}", 0.5)
    bar["colorbar"]["len"] = 1
    return draft.update_layout(coloraxis=bar).figure()


def bias_lines(slopes: Array, head: int, distances: int) -> go.Figure:
    """ALiBi's bias of every head over the distance, 0 to `distances` - 1; the chosen head's line is broad."""
    draft = Draft()
    for number, slope in enumerate(slopes):
        draft.add_trace(_penalty(number, slope, distances, number == head))
    layout(draft, 340, "distance |i − j|", "added to the scaled score")
    draft.update_xaxes(zeroline=False)
    draft.update_yaxes(zeroline=False)
    return draft.update_layout(showlegend=True, legend={"title": "head"}).figure()


def _penalty(head: int, slope: float, distances: int, chosen: bool) -> dict:
    """One head's bias over the distance; beyond the eight colours the lines are dashed."""
    colour, dash = OKABE_ITO[head % len(OKABE_ITO)], DASHES[head // len(OKABE_ITO) % 2]
    return {
        "type": "scatter",
        "x": np.arange(distances),
        "y": -slope * np.arange(distances),
        "mode": "lines",
        "line": {"color": colour, "width": 5 if chosen else 1.5, "dash": dash},
        "name": str(head),
        "hovertemplate": f"head {head}, distance %{{x}}: <b>%{{y:.7g}}</b><extra></extra>",
    }


def moved_bars(tokens: Sequence[str], ways: Mapping[str, Array]) -> go.Figure:
    """How far each token's memory row moved when the words changed places, a bar a token and way."""
    draft = Draft()
    names = [html.escape(name) for name in numbered(tokens)]
    for (way, values), colour, shape in zip(ways.items(), (OKABE_ITO[0], OKABE_ITO[5]), ("", "/"), strict=False):
        draft.add_bar(
            x=np.arange(len(names)),
            y=values,
            name=way,
            marker={"color": colour, "pattern": {"shape": shape}},
            customdata=names,
            hovertemplate=f"%{{customdata}}, {way}: <b>%{{y:.3g}}</b><extra></extra>",
        )
    shown, texts = ticks(tokens)
    layout(draft, 320, "token", "change ÷ length")
    draft.update_xaxes(tickvals=shown, ticktext=texts, showgrid=False, zeroline=False)
    draft.update_yaxes(rangemode="tozero")
    return draft.update_layout(barmode="group", legend=LEGEND).figure()
