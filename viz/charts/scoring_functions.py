"""Scores of one head by several scoring functions (paper, section 3.2.1), side by side. Rows are queries."""

import html
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from viz.figure import grid
from viz.theme import SIGNED, layout, symmetric_range
from viz.tokens import ticks

Array = np.ndarray


def score_maps(rows: Sequence[str], keys: Sequence[str], scores: Mapping[str, Array]) -> go.Figure:
    """One map a scoring function, all in one colour range.

    Args:
        rows: names of the queries, plain text.
        keys: names of the keys, plain text.
        scores: (query, key), by title.
    """
    low, high = symmetric_range(*scores.values())
    draft = grid(1, len(scores), titles=list(scores), horizontal_spacing=0.03)
    x, y = ([html.escape(name) for name in names] for names in (keys, rows))
    gap = 1 if max(len(rows), len(keys)) <= 30 else 0
    for column, (name, values) in enumerate(scores.items(), start=1):
        said = f"{name} <b>%{{z:.7g}}</b><br>query %{{y}}<br>key %{{x}}<extra></extra>"
        heat = {
            "type": "heatmap",
            "z": values.astype(np.float32),
            "x": x,
            "y": y,
            "coloraxis": "coloraxis",
            "hovertemplate": said,
            "xgap": gap,
            "ygap": gap,
        }
        draft.add_trace(heat, row=1, col=column)
    layout(draft, min(max(20 * len(rows), 110), 380) + 170, "", "")
    shown, _ = ticks(keys, 15)
    draft.update_xaxes(tickvals=shown, ticktext=[x[i] for i in shown], tickangle=-60, showgrid=False)
    shown, _ = ticks(rows)
    draft.update_yaxes(autorange="reversed", matches="y", showgrid=False)
    draft.update_yaxes(tickvals=shown, ticktext=[y[i] for i in shown], col=1)
    for column in range(2, len(scores) + 1):
        draft.update_yaxes(showticklabels=False, col=column)
    bar = {"title": {"text": f"score<br>{low:.3g} to {high:.3g}"}, "thickness": 12, "tickformat": ".3~g"}
    draft.update_layout(coloraxis={"colorscale": SIGNED, "cmin": low, "cmax": high, "colorbar": bar})
    return draft.figure()


def cost_table(costs: Mapping[str, tuple[int, int, int]], formulas: Mapping[str, str]) -> pd.DataFrame:
    """One scoring function a line.

    Args:
        costs: multiply-adds, tanhs, and the largest result on the way in numbers, by name.
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
