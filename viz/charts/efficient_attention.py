"""Efficient attention: tiles and the output as it grows; errors of random features; cost and time over n."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from viz.figure import LEGEND_ABOVE, curve, escape, figure, frame, heatmap, hline, scatter, text, vline
from viz.heatmap import CLEAR, QUERY_AND_KEY, cells_height, signed_axis, slanted_room
from viz.theme import CHOSEN, FAINT, GUIDE, OKABE_ITO, symmetric_range
from viz.tokens import MOST_ROOM, axis_ticks, text_width

Array = np.ndarray
Names = Sequence[str]
UPRIGHT = {"autorange": "reversed", "showgrid": False, "zeroline": False}
RANDOM, ELU = OKABE_ITO[0], OKABE_ITO[1]
METHODS = (
    (OKABE_ITO[0], "solid", 4),
    (OKABE_ITO[1], "dash", 2),
    (OKABE_ITO[4], "dot", 3),
    (OKABE_ITO[2], "solid", 2),
    (OKABE_ITO[7], "dashdot", 2),
    (OKABE_ITO[3], "longdash", 2),
    (OKABE_ITO[5], "dot", 2),
)
"""colour, dash and width of each method; where two lines coincide, the narrow one shows on the broad one"""
POWERS = {"type": "log", "exponentformat": "power", "showgrid": True}


def tile_chart(scores: Array, names: tuple[Names, Names], tiles: Array, step: int, skipped: Array) -> go.Figure:
    """The scores of the tile that is read, at their place among all queries and keys.

    Args:
        scores: (query, key), NaN where masked.
        names: of queries and keys.
        tiles: (step, 4): first and end of queries and of keys of each tile.
        step: the tile that is read, counted from 0.
        skipped: (tile, 4): those that are never read.
    """
    top, bottom, left, right = tiles[step]
    shown = np.full(scores.shape, np.nan, dtype=np.float32)
    shown[top:bottom, left:right] = scores[top:bottom, left:right]
    rows, keys = map(escape, names)
    traces = [
        heatmap(
            z=shown,
            x=keys,
            y=rows,
            hoverongaps=False,
            coloraxis="coloraxis",
            hover="score <b>%{z:.5g}</b>" + QUERY_AND_KEY,
        )
    ]
    if len(skipped):
        never = np.full(scores.shape, np.nan, dtype=np.float32)
        for a, b, c, d in skipped:
            never[a:b, c:d] = 0
        traces.append(
            heatmap(
                z=never,
                x=keys,
                y=rows,
                hoverongaps=False,
                hover="skipped: every cell is masked" + QUERY_AND_KEY,
                **CLEAR,
            )
        )
    shapes = [_tile(tile, FAINT) for tile in tiles[:step]] + [_cross_out(tile) for tile in skipped]
    outlines = [frame((c, d - 1), (a, b - 1), GUIDE, 1) for a, b, c, d in (*tiles, *skipped)]
    limits = symmetric_range(scores[np.isfinite(scores)])
    return figure(
        traces,
        height=cells_height(len(rows), 560, 22) + 190,
        margin={"t": 122, "b": 54 + slanted_room(names[1], MOST_ROOM), "l": 62 + text_width(names[0])},
        coloraxis=signed_axis(limits),
        xaxis={"title": "key", "tickangle": -60, "showgrid": False} | axis_ticks(names[1]),
        yaxis={"title": "query"} | UPRIGHT | axis_ticks(names[0]),
        shapes=[*shapes, *outlines, frame((left, right - 1), (top, bottom - 1), CHOSEN, 3)],
    )


def _tile(tile: Array, fill: str) -> dict:
    top, bottom, left, right = tile
    line = {"line": {"width": 0}, "fillcolor": fill, "layer": "below"}
    return frame((left, right - 1), (top, bottom - 1), GUIDE) | line


def _cross_out(tile: Array) -> dict:
    """A line through a tile, from one corner to the other."""
    return frame((tile[2], tile[3] - 1), (tile[0], tile[1] - 1), GUIDE, 1) | {"type": "line"}


def output_chart(o: Array, queries: Names, limits: tuple[float, float], rows: tuple[int, int]) -> go.Figure:
    """O so far, (query, d_v), in one colour range for all steps; the tile's queries are framed."""
    return figure(
        [
            heatmap(
                z=o.astype(np.float32),
                y=escape(queries),
                coloraxis="coloraxis",
                hover="O <b>%{z:.5g}</b><br>%{y}<br>dimension %{x}",
            )
        ],
        height=cells_height(len(queries), 560, 22) + 190,
        margin={"t": 122, "b": 74, "l": 62 + text_width(queries)},
        coloraxis=signed_axis(limits),
        xaxis={"title": "dimension of the value", "showgrid": False},
        yaxis={"title": "query"} | UPRIGHT | axis_ticks(queries),
        shapes=[frame((0, o.shape[1] - 1), (rows[0], rows[1] - 1), CHOSEN, 3)],
    )


def error_chart(features: Array, band: Array, elu: float, chosen: int, title: str, line: float | None) -> go.Figure:
    """An error over the number of random features, both axes logarithmic.

    Args:
        features: (size,)
        band: (3, size): 10th, 50th and 90th percentile over the draws.
        elu: the error of elu(x) + 1.
        chosen: the number of features whose map is drawn.
        title: of the y axis.
        line: an error to compare with; None: no line.
    """
    low, median, high = band
    x = list(features)
    fill = f"rgba({', '.join(str(int(RANDOM[i : i + 2], 16)) for i in (1, 3, 5))}, 0.2)"
    edge = {"line": {"width": 0}, "mode": "lines", "showlegend": False}
    shown = [low.min(), high.max(), elu] + ([] if line is None else [line])
    return figure(
        [
            scatter(x=x, y=low, name="10th percentile", **edge),
            scatter(x=x, y=high, name="10th to 90th percentile", **edge | {"fill": "tonexty", "fillcolor": fill}),
            curve(
                x,
                median,
                "random features, median",
                RANDOM,
                width=3,
                symbol="circle",
                customdata=np.stack([low, high], axis=-1),
                hover="m = %{x}: median <b>%{y:.5g}</b><br>%{customdata[0]:.4g} to %{customdata[1]:.4g}",
            ),
            curve([x[0], x[-1]], [elu, elu], "elu + 1", ELU, dash="dash", hover="elu + 1: <b>%{y:.5g}</b>"),
        ],
        height=380,
        legend=LEGEND_ABOVE,
        margin={"t": 80},
        xaxis={"title": "random features m (log)", "type": "log", "tickvals": x, "ticktext": [*map(str, x)]},
        yaxis={
            "title": f"{title} (log)",
            "type": "log",
            "range": _round_range(shown),
            "tickformat": "~g",
            "dtick": "D2",
        },
        shapes=[vline(chosen, color=CHOSEN), *([] if line is None else [hline(line)])],
    )


def cost_chart(n: Array, costs: Mapping[str, Array], title: str, marked: Mapping[str, int], unit: str) -> go.Figure:
    """Costs over n by method, both axes logarithmic.

    Args:
        n: (length,)
        costs: (length,) by method, in the order of `METHODS`.
        title: of the y axis.
        marked: n by the words beside its line; the first one is dotted.
        unit: for the hover text.
    """
    lines = [
        curve(n, values, name, colour, dash=dash, width=width, hover=f"{name}<br>n = %{{x:,}}: <b>%{{y:,}}</b> {unit}")
        for (name, values), (colour, dash, width) in zip(costs.items(), METHODS, strict=False)
    ]
    dashes, ends = ("dot", "solid"), np.log10([n[0], n[-1]])
    values = np.concatenate([*costs.values()])
    # Whole powers of ten, and room for the words beside the marks.
    low, high = np.floor(np.log10(values.min())), np.ceil(np.log10(values.max()))
    room = 0.2 * max(high - low, 1)
    notes = []
    for rank, (words, length) in enumerate(marked.items()):
        right = np.log10(length) < ends.mean()
        side = {"xanchor": "left", "xshift": 4} if right else {"xanchor": "right", "xshift": -4}
        notes.append(text(words, x=np.log10(length), y=0.99 - 0.07 * rank, yref="y domain", yanchor="top", **side))
    return figure(
        lines,
        height=460,
        legend=LEGEND_ABOVE,
        margin={"t": 110},
        xaxis={"title": "n, tokens (log)", "dtick": 1, "range": list(ends)} | POWERS,
        yaxis={"title": f"{title} (log)", "dtick": 3 if high - low > 5 else 1, "range": [low, high + room]} | POWERS,
        shapes=[vline(length, dash=dash) for length, dash in zip(marked.values(), dashes, strict=True)],
        annotations=notes,
    )


def _round_range(values: Sequence[float]) -> list[float]:
    """Ends of a logarithmic axis as powers of ten, at the next 1, 2 or 5 times a power of ten beyond the values.

    An error of 0, as of a single key, has no place on it.
    """
    values = [value for value in values if value > 0] or [1e-16, 1.0]
    steps = np.log10([1, 2, 5, 10])
    low, high = np.log10([min(values), max(values)])
    # A value on a label is below the next one, whatever the rounding of its logarithm.
    low, high = low + 1e-9, high + 1e-9
    below = np.floor(low) + steps[steps <= low - np.floor(low)].max()
    above = np.floor(high) + steps[steps > high - np.floor(high)].min()
    return [float(below), float(above)]


def growth_chart(
    lengths: Sequence[int],
    samples: Mapping[str, Array],
    fits: Mapping[str, tuple[float, float]],
    fitted: int,
    looks: Mapping[str, tuple[str, str]],
) -> go.Figure:
    """Measured times over n as points, and the power law fitted to those of the longest texts as a line.

    Args:
        lengths: (length,)
        samples: (length, round) seconds, by name.
        fits: (c, p) of c n^p, in seconds, by name.
        fitted: longest lengths that the fit is of.
        looks: colour and marker symbol, by name.
    """
    traces = []
    for name, times in samples.items():
        low, middle, high = np.percentile(times * 1e3, (25, 50, 75), axis=1)
        (colour, symbol), (factor, power) = looks[name], fits[name]
        bars = {"type": "data", "symmetric": False, "array": high - middle, "arrayminus": middle - low}
        points = {"mode": "markers", "marker": {"color": colour, "symbol": symbol, "size": 10}, "error_y": bars}
        hover = f"{name}<br><b>%{{y:.4g}} ms</b> at n = %{{x}}"
        traces.append(scatter(x=list(lengths), y=middle, name=name, hover=hover, **points))
        x = np.array(lengths[-fitted:])
        fit = {"legendgroup": name, "hover": f"{name}: time ~ n<sup>{power:.2f}</sup>"}
        traces.append(curve(x, 1e3 * factor * x**power, f"~ n<sup>{power:.2f}</sup>", colour, dash="dash", **fit))
    return figure(
        traces,
        height=420,
        legend=LEGEND_ABOVE,
        margin={"t": 90},
        xaxis={"title": "n (log)", "type": "log", "tickvals": list(lengths), "ticktext": [*map(str, lengths)]},
        yaxis={"title": "milliseconds, median (log)", "type": "log", "dtick": 1, "tickformat": "~g"},
    )
