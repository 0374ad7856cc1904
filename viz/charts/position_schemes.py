"""Figures of Position schemes: RoPE and ALiBi, and the same words in another order, each next to the original."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from viz.bars import position_chart
from viz.figure import LEGEND_ABOVE, NO_GRID, curve, figure, heatmap, panels, scatter
from viz.heatmap import Map, bar_below, cells_height, colour_axis, map_grid, slanted_room, weight_axis
from viz.latex import signed
from viz.theme import CHOSEN, GUIDE, OKABE_ITO, SIGNED
from viz.tokens import numbered

Array = np.ndarray


def comparison_maps(
    names: tuple[Sequence[str], Sequence[str]],
    mask: Array,
    scores: Mapping[str, Array],
    weights: Mapping[str, Array],
    limit: float = 1.0,
) -> go.Figure:
    """Maps of one head in two columns: scores in one colour range, below them attention weights from 0 to 1.

    Args:
        names: of queries and keys, plain text.
        mask: bool (query, key), True = visible.
        scores: (query, key) by title, two or none.
        weights: (query, key) by title, two or four.
        limit: the largest magnitude of a score.
    """
    rows, keys = names
    lines = (len(scores) + len(weights)) // 2
    plot, label_room = lines * (cells_height(len(rows), 330) + 60) - 60, slanted_room(keys)
    colours = {"coloraxis": "coloraxis2"}
    traces, layout = map_grid(
        rows,
        keys,
        [Map(title, values, mask, "score <b>%{z:.7g}</b>") for title, values in scores.items()]
        + [Map(title, values, mask, colours=colours) for title, values in weights.items()],
        columns=2,
        title_style={"font": {"size": 12}},
        horizontal_spacing=0.03,
        vertical_spacing=60 / plot,
    )
    # The colour bars lie at the foot, so that the maps have the whole width.
    below = (label_room + 10) / plot
    bars = {"coloraxis2": weight_axis("attention weight, 0 to 1", **bar_below(0.78 if scores else 0.5, 0.4, below))}
    if scores:
        title = f"score, ±{limit:.3g}"
        bars["coloraxis"] = colour_axis(SIGNED, -limit, limit, title, **bar_below(0.22, 0.4, below))
    return figure(
        traces,
        layout,
        panels("xaxis", (1, 2), {"showticklabels": lines == 1}),
        bars,
        height=plot + label_room + 130,
        margin={"b": label_room + 90},
    )


def offset_chart(offsets: Array, scores: Array, plain: float, here: int) -> go.Figure:
    """The score of one query and one key as a function of their offset, contents unchanged.

    Args:
        offsets: (offset,), n - m.
        scores: (offset,), after the rotation.
        plain: without a rotation, the same at every offset.
        here: the offset of the two in the sentence.
    """
    hover = "offset %{x:+d}: <b>%{y:.7g}</b>"
    ends = [offsets[0], offsets[-1]]
    return figure(
        [
            curve(
                offsets, scores, "rotated", OKABE_ITO[0], width=1.5, marker={"size": 4}, symbol="circle", hover=hover
            ),
            scatter(
                x=[here],
                y=scores[offsets == here],
                mode="markers",
                marker={"size": 14, "symbol": "circle-open", "color": CHOSEN, "line": {"width": 3}},
                name=f"in your sentence: offset {signed(here, '+d')}",
                hover=hover,
            ),
            curve(ends, [plain, plain], f"not rotated: {signed(plain, '.4g')}", GUIDE, dash="dot", width=1.5),
        ],
        height=320,
        legend=LEGEND_ABOVE,
        showlegend=True,
        xaxis={"title": "offset n − m, key minus query"},
        yaxis={"title": "score q · k", "zeroline": False},
    )


def bias_map(bias: Array, limit: float) -> go.Figure:
    """ALiBi's bias of one head.

    Args:
        bias: (query, key), NaN where a cell is masked.
        limit: end of the scores' colour range.
    """
    square = {"constrain": "domain"}
    return figure(
        [
            heatmap(
                z=np.ascontiguousarray(bias, np.float32),
                coloraxis="coloraxis",
                hoverongaps=False,
                hover="query %{y}, key %{x}: <b>%{z:.7g}</b>",
            )
        ],
        height=340,
        xaxis=square | {"title": "key"},
        yaxis=square | NO_GRID | {"title": "query", "autorange": "reversed", "scaleanchor": "x"},
        coloraxis=colour_axis(SIGNED, -limit, limit, f"score<br>±{limit:.3g}", len=1, y=0.5),
    )


def bias_chart(slopes: Array, head: int, distances: int) -> go.Figure:
    """ALiBi's bias of every head over the distance, 0 to `distances` - 1; the line of the chosen head is wide.

    Args:
        slopes: (head,).
        head: the chosen one.
        distances: how many to plot.
    """
    steps = np.arange(distances)
    colours = len(OKABE_ITO)
    return figure(
        [
            curve(
                steps,
                -slope * steps,
                str(number),
                OKABE_ITO[number % colours],
                width=5 if number == head else 1.5,
                dash=("solid", "dash")[number // colours % 2],  # beyond the eight colours
                hover=f"head {number}, distance %{{x}}: <b>%{{y:.7g}}</b>",
            )
            for number, slope in enumerate(slopes)
        ],
        height=340,
        showlegend=True,
        legend={"title": "head"},
        xaxis={"title": "distance |i − j|"},
        yaxis={"title": "added to the scaled score", "zeroline": False},
    )


def memory_change_bars(tokens: Sequence[str], variants: Mapping[str, Array]) -> go.Figure:
    """How far each token's encoder output moved when the words changed places, relative to its length.

    Args:
        tokens: source pieces.
        variants: name -> change ÷ length, (position,); at most two.
    """
    looks = ({"color": OKABE_ITO[0]}, {"color": OKABE_ITO[5], "pattern": {"shape": "/"}})
    series = {name: (values, look) for (name, values), look in zip(variants.items(), looks, strict=False)}
    titles = ("token", "change ÷ length")
    return position_chart(numbered(tokens), series, 320, titles, number=".3g", yaxis={"rangemode": "tozero"})
