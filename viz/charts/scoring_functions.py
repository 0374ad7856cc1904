"""Figures of scoring functions (paper, section 3.2.1): the scores of one head under several of them."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from viz.figure import figure
from viz.heatmap import Map, cells_height, colour_axis, map_grid
from viz.theme import SIGNED, symmetric_range

Array = np.ndarray


def score_maps(rows: Sequence[str], keys: Sequence[str], scores: Mapping[str, Array]) -> go.Figure:
    """One map for each scoring function, all in one colour range.

    Args:
        rows: names of the queries, plain text.
        keys: names of the keys, plain text.
        scores: (query, key), by title.
    """
    low, high = symmetric_range(*scores.values())
    maps = [
        Map(name, values, np.ones(values.shape, dtype=bool), f"{name} <b>%{{z:.7g}}</b>")
        for name, values in scores.items()
    ]
    return figure(
        *map_grid(rows, keys, maps, horizontal_spacing=0.03),
        height=cells_height(len(rows), 380) + 170,
        coloraxis=colour_axis(SIGNED, low, high, f"score<br>{low:.3g} to {high:.3g}"),
    )


def cost_table(costs: Mapping[str, tuple[int, int, int]], formulas: Mapping[str, str]) -> pd.DataFrame:
    """One line for each scoring function.

    Args:
        costs: multiply-adds, tanhs, and the numbers in the largest intermediate result, by name.
        formulas: by name.
    """
    multiply_adds, tanhs, numbers = zip(*costs.values(), strict=True)
    return pd.DataFrame(
        {
            "scoring function": list(costs),
            "score of q and k": [formulas[name] for name in costs],
            "multiply-adds": list(multiply_adds),
            "tanh": list(tanhs),
            "largest result, numbers": list(numbers),
        }
    )
