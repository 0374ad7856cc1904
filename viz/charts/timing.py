"""Figures of measured times over the sentence length."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from viz.figure import LEGEND_ABOVE, curve, figure, text, vline

Array = np.ndarray


def time_chart(
    lengths: Sequence[int], samples: Mapping[str, Array], looks: Mapping[str, tuple[str, str]], n: int
) -> go.Figure:
    """Median times as lines, with the middle half of the rounds as error bars, both axes logarithmic.

    Args:
        lengths: (length,)
        samples: (length, round) seconds, by name.
        looks: colour and marker symbol, by name.
        n: tokens of the current sentence.
    """
    traces = []
    for name, times in samples.items():
        low, middle, high = np.percentile(times * 1e3, (25, 50, 75), axis=1)
        bars = {"type": "data", "symmetric": False, "array": high - middle, "arrayminus": middle - low}
        colour, symbol = looks[name]
        look = {"width": 3, "symbol": symbol, "marker": {"symbol": symbol, "size": 10}, "error_y": bars}
        hover = f"{name}<br><b>%{{y:.4g}} ms</b> at n = %{{x}}"
        traces.append(curve(list(lengths), middle, name, colour, hover=hover, **look))
    side, shift = ("right", -6) if n > max(lengths) / 4 else ("left", 6)
    place = {"x": np.log10(n), "xanchor": side, "xshift": shift, "y": 0.02, "yref": "y domain"}
    return figure(
        traces,
        height=400,
        legend=LEGEND_ABOVE,
        xaxis={
            "title": "positions n (log)",
            "type": "log",
            "tickvals": list(lengths),
            "ticktext": [*map(str, lengths)],
        },
        yaxis={"title": "milliseconds, median (log)", "type": "log", "dtick": 1, "tickformat": "~g"},
        shapes=[vline(n)],
        annotations=[text(f"your sentence: {n}", **place)],
    )


def time_table(lengths: Sequence[int], columns: Mapping[str, Array | Sequence]) -> pd.DataFrame:
    """One line for each length, with the other columns given."""
    return pd.DataFrame({"n": list(lengths), **{name: list(values) for name, values in columns.items()}})
