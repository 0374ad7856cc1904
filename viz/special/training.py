"""Figure of Training: label smoothing."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from viz.bars import candidate_axis, candidate_names, with_rest
from viz.figure import LEGEND_ABOVE, figure, merge, scatter
from viz.theme import DECODER, GUIDE, OKABE_ITO

Array = np.ndarray

TARGET = OKABE_ITO[3]


def smoothing_chart(tokens: Sequence[str], target: Array, model: Array, right: int, vocabulary: int) -> go.Figure:
    """Smoothed target and model at one position, on a logarithmic axis: the most probable tokens, and all others.

    Args:
        tokens: pieces, the model's best first.
        target: (token,) smoothed target probabilities.
        model: (token,) the model's probabilities.
        right: index of the correct token.
        vocabulary: number of tokens in the vocabulary.
    """
    names = candidate_names(tokens, vocabulary - len(tokens))
    series = (("smoothed target", target, TARGET, "diamond"), ("the model, here", model, DECODER, "circle"))
    return figure(
        [
            scatter(
                x=with_rest(values),
                y=np.arange(len(names)),
                customdata=names,
                mode="markers",
                name=name,
                marker={"color": colour, "symbol": symbol, "size": 12, "line": {"color": GUIDE, "width": 1}},
                hover=f"%{{customdata}}<br>{name}: <b>%{{x:.6g}}</b>",
            )
            for name, values, colour, symbol in series
        ],
        height=110 + 26 * len(names),
        legend=LEGEND_ABOVE,
        xaxis=_decades(target, model) | {"title": "probability (log), of the whole vocabulary", "type": "log"},
        yaxis=merge(candidate_axis(names, right), {"showgrid": True}),
    )


def _decades(*probabilities: Array) -> dict:
    """Range and ticks of a logarithmic axis of probabilities, at most nine decades labelled."""
    positive = np.concatenate(probabilities)
    positive = positive[positive > 0]
    low = int(np.floor(np.log10(positive.min()))) if len(positive) else -1
    ticks = range(0, low - 1, -max(1, -low // 8))
    return {
        "range": [low - 0.2, 0.2],
        "tickvals": [10.0**tick for tick in ticks],
        "ticktext": [f"10<sup>{tick}</sup>" if tick else "1" for tick in ticks],
    }
