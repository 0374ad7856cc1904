"""Figure of Broken on purpose: one head's attention weights without and with the mistake."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from viz.figure import figure
from viz.heatmap import Map, bar_below, cells_height, map_grid, slanted_room, weight_axis

Array = np.ndarray


def mistake_maps(
    rows: Sequence[str],
    keys: tuple[Sequence[str], Sequence[str]],
    weights: tuple[Array, Array],
    masks: tuple[Array, Array],
) -> go.Figure:
    """The right and the wrong weights of a head; keys may differ. NaN has no colour.

    Args:
        rows: names of the queries, plain text.
        keys: names of the keys, right and wrong.
        weights: (query, key), right and wrong.
        masks: bool (query, key), True = visible.
    """
    titles = "Without the mistake", "With the mistake"
    maps = [Map(*each[:3], keys=each[3]) for each in zip(titles, weights, masks, keys, strict=True)]
    traces, layout = map_grid(rows, keys[0], maps, horizontal_spacing=0.06)
    room = slanted_room(max(keys, key=lambda names: max(map(len, names))))
    cells = cells_height(len(rows), 420)
    return figure(
        traces,
        layout,
        height=cells + room + 130,
        margin={"t": 40, "b": room + 80},
        coloraxis=weight_axis("attention weight, 0 to 1", **bar_below(0.5, 0.5, (room + 20) / cells)),
    )
