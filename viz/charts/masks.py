"""Figures of Masks (paper, section 3.2.3): which keys each query may attend to, and what leaks without the mask."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from viz.figure import figure
from viz.heatmap import Map, cells_height, map_grid, slanted_room, weight_axis
from viz.tokens import MOST_ROOM

Array = np.ndarray

BESIDE = 146
"""pixels for the colour bars at the right and their titles"""
VISIBLE = {"colorscale": [[0, "#56B4E9"], [1, "#56B4E9"]], "showscale": False}


def weight_maps(rows: Sequence[str], keys: Sequence[str], mask: Array, maps: Mapping[str, Array]) -> go.Figure:
    """Several versions of a head's attention weights side by side, in one colour range from 0 to 1.

    Args:
        rows: names of the queries.
        keys: names of the keys.
        mask: bool (query, key), True = visible.
        maps: title -> weights, (query, key).
    """
    traces, layout = map_grid(
        rows, keys, [Map(title, values, mask) for title, values in maps.items()], horizontal_spacing=0.02
    )
    return figure(
        traces,
        layout,
        height=cells_height(len(rows), 400) + 190,
        margin={"b": 18 + slanted_room(keys, MOST_ROOM), "r": BESIDE},
        coloraxis=weight_axis(len=1, y=0.5),
    )
