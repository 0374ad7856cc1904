"""Figures of Three families: all attentions of a translator as one matrix, and the masks of other families."""

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from viz.charts.masks import VISIBLE
from viz.figure import figure, hline, vline
from viz.heatmap import Map, bar_below, cells_height, map_grid, slanted_room, weight_axis
from viz.theme import CHOSEN

Array = np.ndarray


def joined_map(names: Sequence[str], weights: Array, mask: Array, sources: int) -> go.Figure:
    """The weights of encoder, cross and decoder attention in one matrix, with lines where the source ends.

    Args:
        names: of the source's tokens and the target's, plain text, unique.
        weights: (token, token), 0 to 1.
        mask: bool (token, token), False where no weight is computed.
        sources: tokens of the source.
    """
    traces, layout = map_grid(names, names, (Map("", weights, mask),))
    plot, room = cells_height(len(names), 620), slanted_room(names)
    return figure(
        traces,
        layout,
        height=plot + room + 100,
        margin={"t": 20, "b": room + 75},
        yaxis={"title": "query"},
        coloraxis=weight_axis("attention weight, 0 to 1", **bar_below(0.5, 0.5, (room + 10) / plot)),
        shapes=_borders(sources, 1),
    )


def family_maps(names: Sequence[str], masks: Mapping[str, Array], sources: int) -> go.Figure:
    """What a token may attend to in each family: blue is visible.

    Args:
        names: of all tokens, plain text, unique.
        masks: title -> bool (token, token), True = visible.
        sources: tokens before the line.
    """
    ones = np.ones((len(names), len(names)))
    maps = [Map(title, ones, mask, "may attend", VISIBLE) for title, mask in masks.items()]
    traces, layout = map_grid(names, names, maps, horizontal_spacing=0.03)
    return figure(
        traces,
        layout,
        height=cells_height(len(names), 420, 14) + slanted_room(names) + 70,
        shapes=[shape for panel in range(1, len(maps) + 1) for shape in _borders(sources, panel)],
    )


def _borders(sources: int, panel: int) -> list[dict]:
    style = {"color": CHOSEN, "width": 2, "dash": "solid"}
    return [vline(sources - 0.5, panel=panel, **style), hline(sources - 0.5, panel=panel, **style)]
