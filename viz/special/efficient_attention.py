"""Efficient attention: the tile that FlashAttention reads, and the output as it grows."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from viz.figure import escape, figure, frame, heatmap
from viz.heatmap import CLEAR, QUERY_AND_KEY, cells_height, signed_axis, slanted_room
from viz.theme import CHOSEN, FAINT, GUIDE, symmetric_range
from viz.tokens import MOST_ROOM, axis_ticks, text_width

Array = np.ndarray
Names = Sequence[str]
HEAD, MOST_CELLS = 78, 250
"""pixels above a map, for the colour bar, and of the map at most"""
EACH, LABEL = 13, 15
"""pixels of a row, and of its label"""
UPRIGHT = {"autorange": "reversed", "showgrid": False, "zeroline": False}


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
    limits, height = symmetric_range(scores[np.isfinite(scores)]), cells_height(len(rows), MOST_CELLS, EACH)
    return figure(
        traces,
        height=HEAD + height + 54 + slanted_room(names[1], MOST_ROOM),
        margin={"t": HEAD, "b": 54 + slanted_room(names[1], MOST_ROOM), "l": 62 + text_width(names[0])},
        coloraxis=signed_axis(limits, "score"),
        xaxis={"title": "key", "tickangle": -60, "showgrid": False} | axis_ticks(names[1]),
        yaxis={"title": "query"} | UPRIGHT | axis_ticks(names[0], height // LABEL),
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
    height = cells_height(len(queries), MOST_CELLS, EACH)
    return figure(
        [
            heatmap(
                z=o.astype(np.float32),
                y=escape(queries),
                coloraxis="coloraxis",
                hover="O <b>%{z:.5g}</b><br>%{y}<br>dimension %{x}",
            )
        ],
        height=HEAD + height + 74,
        margin={"t": HEAD, "b": 74, "l": 62 + text_width(queries)},
        coloraxis=signed_axis(limits, "output"),
        xaxis={"title": "dimension of the value", "showgrid": False},
        yaxis={"title": "query"} | UPRIGHT | axis_ticks(queries, height // LABEL),
        shapes=[frame((0, o.shape[1] - 1), (rows[0], rows[1] - 1), CHOSEN, 3)],
    )
