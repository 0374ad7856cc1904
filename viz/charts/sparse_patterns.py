"""Efficient attention, sparse patterns: kept cells, the share of weight on them, log p over the size."""

import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from viz.figure import LEGEND_ABOVE, band, bar, curve, figure, hline, scatter, vline
from viz.heatmap import Map, cells_height, map_grid, weight_axis
from viz.latex import signed
from viz.theme import CHOSEN, FAINT, OKABE_ITO

Array = np.ndarray
BELOW = 0.06
"""how far the log p axis reaches beyond the values, as a share of their range"""


def pattern_maps(names: tuple[Sequence[str], Sequence[str]], maps: Mapping[str, tuple[Array, Array]]) -> go.Figure:
    """Weights of one head in several runs or masks, side by side in one colour range.

    Args:
        names: of queries and keys.
        maps: title -> weights and bool mask, (query, key) each.
    """
    panels = [Map(title, weights, mask) for title, (weights, mask) in maps.items()]
    traces, layout = map_grid(*names, panels, horizontal_spacing=0.02)
    height = cells_height(len(names[0]), 400) + 190
    return figure(traces, layout, height=height, coloraxis=weight_axis(len=1, y=0.5))


def layer_chart(
    layers: Sequence[int], values: Array, chosen: tuple[int, int], title: str, limits: tuple[float, float] = (0, 1)
) -> go.Figure:
    """A number for each head over the layers, and the mean of each layer.

    Args:
        layers: (layer,), their numbers.
        values: (layer, head)
        chosen: layer and head that are marked.
        title: of the y axis.
        limits: of the y axis.
    """
    x, heads = np.repeat(layers, values.shape[1]), np.tile(np.arange(values.shape[1]), len(layers))
    layer, head = chosen
    points = {"mode": "markers", "hover": "layer %{x}, head %{customdata}: <b>%{y:.5f}</b>"}
    marker = {"color": OKABE_ITO[4], "size": 8, "opacity": 0.7}
    ring = {"color": CHOSEN, "symbol": "diamond-open", "size": 14, "line": {"width": 2}}
    return figure(
        [
            scatter(x=x, y=values.ravel(), customdata=heads, name="each head", marker=marker, **points),
            curve(
                list(layers),
                values.mean(axis=1),
                "mean of the layer",
                OKABE_ITO[0],
                symbol="square",
                hover="layer %{x}, mean: <b>%{y:.5f}</b>",
            ),
            scatter(
                x=[layer],
                y=[values[list(layers).index(layer), head]],
                customdata=[head],
                name="chosen head",
                marker=ring,
                **points,
            ),
        ],
        height=360,
        legend=LEGEND_ABOVE,
        margin={"t": 80},
        xaxis={"title": "layer", "tickvals": list(layers), "range": [min(layers) - 0.5, max(layers) + 0.5]},
        yaxis={"title": title, "range": [limits[0] - 0.03, limits[1] + 0.03]},
    )


def size_chart(
    sizes: Array, scores: Array, same: Array, plain: tuple[float, float], chosen: int, title: str
) -> go.Figure:
    """log p of the same target over the size of a pattern.

    Args:
        sizes: (size,)
        scores: (size,), nats; NaN where not run.
        same: (size,): 1 where the model writes the same text as without the pattern.
        plain: log p without the pattern, and the distance from it that is shaded.
        chosen: size that is marked.
        title: of the x axis.
    """
    known = np.isfinite(scores)
    x, y, value, room = sizes[known], scores[known], *plain
    shown = [*y, value - room, value + room]
    spread = max(shown) - min(shown)
    looks = {
        "the same output": (same[known] == 1, OKABE_ITO[0], "circle"),
        "another output": (same[known] == 0, OKABE_ITO[5], "x"),
    }
    # An entry of the legend stays where no size has it, so that the colours keep their meaning.
    points = [
        scatter(
            x=x[rows],
            y=y[rows],
            name=name,
            mode="markers",
            marker={"color": colour, "symbol": symbol, "size": 11},
            hover=f"size %{{x}}: log p <b>%{{y:.4f}}</b><br>{name}",
        )
        for name, (rows, colour, symbol) in looks.items()
    ]
    line = curve(x, y, "", OKABE_ITO[7], showlegend=False, hoverinfo="skip")
    shade = band(0, 1, FAINT) | {"xref": "x domain", "yref": "y", "y0": value - room, "y1": value + room}
    return figure(
        [line, *points],
        height=400,
        legend=LEGEND_ABOVE,
        margin={"t": 80},
        xaxis={"title": f"{title} (log)", "type": "log", "tickvals": list(sizes), "ticktext": [*map(str, sizes)]},
        yaxis={
            "title": "log p of the same target, nats",
            "range": [min(shown) - BELOW * spread, max(shown) + BELOW * spread],
        },
        shapes=[shade, hline(value), vline(chosen, color=CHOSEN)],
    )


def difference_bars(differences: Mapping[str, float]) -> go.Figure:
    """Differences of log p, a bar each, in nats."""
    values = list(differences.values())
    names = ["<br>".join(textwrap.wrap(name, 18)) for name in differences]
    room = 0.2 * (max(*values, 0) - min(*values, 0)) or 1
    return figure(
        [
            bar(
                x=values,
                y=names,
                orientation="h",
                text=[signed(value, "+.3f") for value in values],
                textposition="outside",
                cliponaxis=False,
                marker={"color": OKABE_ITO[0]},
                hover="%{y}: <b>%{x:+.5f}</b> nats",
            )
        ],
        height=70 * len(values) + 80,
        showlegend=False,
        xaxis={
            "title": "log p − log p as trained, nats",
            "zeroline": True,
            "showgrid": True,
            "range": [min(*values, 0) - room, max(*values, 0) + room],
        },
        yaxis={"autorange": "reversed", "showgrid": False},
    )
