"""Figures of the home page: the probability of each written token, its alternatives, and the cross-attention map."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from viz.forms import Bars
from viz.theme import DECODER, FAINT_DECODER, GUIDE, Array
from viz.tokens import labels, text_width


def certainty_bars(next_tokens: Sequence[str], probabilities: Array, chosen: int, **form: Any) -> Bars:
    """The probability that the model gave each token of its text when it was written.

    Args:
        next_tokens: the text's pieces, the end token last.
        probabilities: (position,) of the whole vocabulary, 0 to 1.
        chosen: the position to emphasise.
        **form: of the form, such as `sets`.
    """
    emphasised = np.arange(len(next_tokens)) == chosen
    # Colours and no opacity: that would fade, or not, with Plotly's own selection.
    marker = {
        "color": np.where(emphasised, DECODER, FAINT_DECODER),
        "line": {"color": GUIDE, "width": np.where(emphasised, 2, 0)},
    }
    # In half the width of the page, Plotly turns the labels by 90 degrees unless there are few.
    margin = {"b": 58 + text_width(labels(next_tokens), most=72)} if len(next_tokens) > 8 else {}
    return Bars(
        labels(next_tokens),
        {"probability": probabilities},
        ("token", "probability"),
        (0, 1),
        [marker],
        number=".6f",
        height=260,
        layout={"yaxis": {"tickformat": ".0%"}, "margin": margin},
        **form,
    )


def rank_candidates(candidates: Sequence, written: tuple[str, int, float]) -> tuple[list[str], Array, int]:
    """Tokens and probabilities at one position, best first, and the index of the one that was written.

    Args:
        candidates: the most probable ones, best first (`token`, `id`, `probability` each).
        written: token, id and probability of the one in the translation, appended if it is not among them.
    """
    listed = [(c.token, c.id, c.probability) for c in candidates]
    if written[1] not in [token_id for _, token_id, _ in listed]:
        listed.append(written)
    names, ids, probabilities = zip(*listed, strict=True)
    return list(names), np.array(probabilities), ids.index(written[1])
