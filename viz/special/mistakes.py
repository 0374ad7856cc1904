"""Figure of Broken on purpose: one head's attention weights without and with the mistake."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from viz.figure import escape, figure, heatmap
from viz.heatmap import QUERY_AND_KEY, Map, bar_below, cells_height, map_grid, slanted_room, weight_axis
from viz.theme import OKABE_ITO, Array

NOT_A_NUMBER = OKABE_ITO[1]
"""colour of cells that are NaN: orange"""


def mistake_maps(
    rows: Sequence[str],
    keys: tuple[Sequence[str], Sequence[str]],
    weights: tuple[Array, Array],
    masks: tuple[Array, Array],
) -> go.Figure:
    """The right and the wrong weights of a head; keys may differ. Cells that are NaN have one colour.

    Args:
        rows: names of the queries, plain text.
        keys: names of the keys, right and wrong.
        weights: (query, key), right and wrong.
        masks: bool (query, key), True = visible.
    """
    titles = "Without the mistake", "With the mistake"
    maps = [Map(*each[:3], keys=each[3]) for each in zip(titles, weights, masks, keys, strict=True)]
    traces, layout = map_grid(rows, keys[0], maps, horizontal_spacing=0.06)
    broken = np.isnan(weights[1]) & masks[1]
    if broken.any():
        # Before the weights, whose map leaves these cells out; else they would look like masked ones.
        marks = np.where(broken, 0, np.nan).astype(np.float32)
        one_colour = {"colorscale": [[0, NOT_A_NUMBER], [1, NOT_A_NUMBER]], "showscale": False, "hoverongaps": False}
        names = {"x": escape(keys[1]), "y": escape(rows)}
        traces.insert(1, heatmap(z=marks, panel=2, hover="not a number" + QUERY_AND_KEY, **names, **one_colour))
    room = slanted_room(max(keys, key=lambda names: max(map(len, names))))
    cells = cells_height(len(rows), 300)
    return figure(
        traces,
        layout,
        height=cells + room + 130,
        margin={"t": 40, "b": room + 80},
        coloraxis=weight_axis("attention weight, 0 to 1", **bar_below(0.5, 0.5, (room + 20) / cells)),
    )
