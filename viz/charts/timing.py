"""Measured times over the length of the sentence, and how fast they grow."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from viz.charts.model_card import LINE
from viz.figure import Draft
from viz.theme import layout

Array = np.ndarray


def time_chart(
    lengths: Sequence[int], samples: Mapping[str, Array], looks: Mapping[str, tuple[str, str]], n: int
) -> go.Figure:
    """Median times as lines, with the middle half of the rounds as bars, both axes logarithmic.

    Args:
        lengths: (length,)
        samples: (length, round) seconds, by name.
        looks: colour and marker symbol, by name.
        n: tokens of the current sentence.
    """
    draft = Draft()
    for name, times in samples.items():
        low, middle, high = np.percentile(times * 1e3, (25, 50, 75), axis=1)
        draft.add_scatter(
            x=list(lengths),
            y=middle,
            error_y={"type": "data", "symmetric": False, "array": high - middle, "arrayminus": middle - low},
            mode="lines+markers",
            name=name,
            line={"color": looks[name][0], "width": 3},
            marker={"symbol": looks[name][1], "size": 10},
            hovertemplate=f"{name}<br><b>%{{y:.4g}} ms</b> at n = %{{x}}<extra></extra>",
        )
    draft.add_vline(n, line={"color": LINE, "width": 1, "dash": "dot"})
    side = "right" if n > max(lengths) / 4 else "left"
    draft.add_annotation(
        text=f"your sentence: {n}",
        x=np.log10(n),
        xanchor=side,
        y=0.02,
        yref="y domain",
        showarrow=False,
        xshift=-6 if side == "right" else 6,
    )
    layout(draft, 400, "positions n (log)", "milliseconds, median (log)")
    draft.update_xaxes(type="log", tickvals=list(lengths), ticktext=[str(length) for length in lengths])
    draft.update_yaxes(type="log", dtick=1, tickformat="~g")
    draft.update_layout(legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0})
    return draft.figure()


def time_table(lengths: Sequence[int], columns: Mapping[str, Array | Sequence]) -> pd.DataFrame:
    """One line a length, a column for everything else."""
    return pd.DataFrame({"n": list(lengths), **{name: list(values) for name, values in columns.items()}})
