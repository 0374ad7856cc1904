"""Other ways to say where a word stands (RoPE, ALiBi), and other orders of the words: before beside after.

Rows are queries, columns keys. A masked cell has no colour: it is hatched.
"""

import html
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from viz.masks import add_map, axes, scale
from viz.theme import OKABE_ITO, SIGNED, WEIGHTS, layout
from viz.tokens import numbered, ticks
from viz.waves import LEGEND, LINE

Array = np.ndarray

DASHES = ("solid", "dash")


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
    height = lines * (each + 60) + 140
    figure = make_subplots(
        lines, 2, subplot_titles=list(maps), horizontal_spacing=0.03, vertical_spacing=60 / (height - 140)
    )
    for number, (title, values) in enumerate(maps.items()):
        said, axis = ("score", "coloraxis") if title in scores else ("weight", "coloraxis2")
        add_map(figure, divmod(number, 2), names, (values, mask), f"{said} <b>%{{z:.7g}}</b>", {"coloraxis": axis})
    layout(figure, height, "", "")
    axes(figure, rows, keys)
    if lines > 1:
        figure.update_xaxes(showticklabels=False, row=1)
    bars = {"coloraxis2": scale(WEIGHTS, 0, 1, "weight<br>0 to 1", 0.2 if scores else 0.5)}
    if scores:
        bars["coloraxis"] = scale(SIGNED, -limit, limit, f"score<br>±{limit:.3g}", 0.8)
    return figure.update_layout(**bars, margin={"b": 90})


def offset_curve(offsets: Array, scores: Array, plain: float, here: int) -> go.Figure:
    """The score of one query and one key over the offset at which the key stands, the contents kept.

    Args:
        offsets: (offset,), n - m.
        scores: (offset,), after the rotation.
        plain: without a rotation, the same at every offset.
        here: the offset at which the two stand in the sentence.
    """
    figure = go.Figure()
    figure.add_hline(plain, line={"color": LINE, "width": 1.5, "dash": "dot"})
    place = {"x": 0.01, "xref": "x domain", "xanchor": "left", "y": plain, "yanchor": "bottom"}
    figure.add_annotation(text=f"not rotated: {plain:.4g}", showarrow=False, **place)
    hover = "offset %{x:+d}: <b>%{y:.7g}</b><extra></extra>"
    figure.add_scatter(
        x=offsets,
        y=scores,
        mode="lines+markers",
        marker={"size": 4},
        line={"color": OKABE_ITO[0], "width": 1.5},
        name="rotated",
        hovertemplate=hover,
    )
    ring = {"size": 14, "symbol": "circle-open", "color": OKABE_ITO[5], "line": {"width": 3}}
    figure.add_scatter(
        x=[here],
        y=scores[offsets == here],
        mode="markers",
        marker=ring,
        name=f"in your sentence: offset {here:+d}",
        hovertemplate=hover,
    )
    layout(figure, 320, "offset n − m (the key's position less the query's)", "score q · k")
    figure.update_xaxes(zeroline=False)
    figure.update_yaxes(zeroline=False)
    return figure.update_layout(showlegend=True, legend=LEGEND)


def bias_chart(bias: Array, slopes: Array, head: int, limit: float) -> go.Figure:
    """ALiBi's bias: of one head as a matrix, of all heads over the distance, the chosen one drawn broad.

    Args:
        bias: (query, key), of `head`.
        slopes: (head,).
        head: the chosen one.
        limit: the largest magnitude of the scores' colour range, which the matrix shares.
    """
    titles = (f"−m |i − j| of head {head}, m = {slopes[head]:.4g}", "All heads, over the distance")
    figure = make_subplots(1, 2, subplot_titles=titles, horizontal_spacing=0.14)
    hover = "query %{y}, key %{x}: <b>%{z:.7g}</b><extra></extra>"
    figure.add_heatmap(
        z=np.ascontiguousarray(bias, np.float32), coloraxis="coloraxis", hovertemplate=hover, row=1, col=1
    )
    for number, slope in enumerate(slopes):
        figure.add_trace(_penalty(number, slope, max(bias.shape), number == head), row=1, col=2)
    layout(figure, 360, "", "")
    figure.update_xaxes(title="key", showgrid=False, zeroline=False, col=1)
    figure.update_yaxes(title="query", autorange="reversed", showgrid=False, zeroline=False, col=1)
    figure.update_xaxes(title="distance |i − j|", zeroline=False, col=2)
    figure.update_yaxes(title="added to the score", title_standoff=2, zeroline=False, col=2)
    bar = scale(SIGNED, -limit, limit, f"score<br>±{limit:.3g}", 0.5)
    bar["colorbar"] |= {"x": 0.44, "len": 1}
    legend = {"title": "head", "y": 1, "yanchor": "top"}
    return figure.update_layout(coloraxis=bar, legend=legend)


def _penalty(head: int, slope: float, distances: int, chosen: bool) -> go.Scatter:
    """One head's bias over the distance; beyond the eight colours the lines are dashed."""
    colour, dash = OKABE_ITO[head % len(OKABE_ITO)], DASHES[head // len(OKABE_ITO) % 2]
    return go.Scatter(
        x=np.arange(distances),
        y=-slope * np.arange(distances),
        mode="lines",
        line={"color": colour, "width": 5 if chosen else 1.5, "dash": dash},
        name=str(head),
        hovertemplate=f"head {head}, distance %{{x}}: <b>%{{y:.7g}}</b><extra></extra>",
    )


def moved_bars(tokens: Sequence[str], ways: Mapping[str, Array]) -> go.Figure:
    """How far each token's memory row moved when the words changed places, a bar a token and way."""
    figure = go.Figure()
    names = [html.escape(name) for name in numbered(tokens)]
    for (way, values), colour, shape in zip(ways.items(), (OKABE_ITO[0], OKABE_ITO[5]), ("", "/"), strict=False):
        figure.add_bar(
            x=np.arange(len(names)),
            y=values,
            name=way,
            marker={"color": colour, "pattern": {"shape": shape}},
            customdata=names,
            hovertemplate=f"%{{customdata}}, {way}: <b>%{{y:.3g}}</b><extra></extra>",
        )
    shown, texts = ticks(tokens)
    layout(figure, 320, "token", "change ÷ length")
    figure.update_xaxes(tickvals=shown, ticktext=texts, showgrid=False, zeroline=False)
    figure.update_yaxes(rangemode="tozero")
    return figure.update_layout(barmode="group", legend=LEGEND)
