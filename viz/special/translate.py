"""Figures of the home page: the probability of each written token, its alternatives, and the cross-attention map."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from viz.bars import PERCENT, candidate_axis, candidate_bars, candidate_names, with_rest
from viz.figure import StableFigure, figure
from viz.forms import Bars, Form
from viz.theme import DECODER, FAINT_DECODER, GUIDE
from viz.tokens import labels, text_width

Array = np.ndarray


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


def alternative_bars(tokens: Sequence[str], probabilities: Array, written: int, vocabulary: int) -> go.Figure:
    """The most probable tokens at one position, and all others of the vocabulary together.

    Args:
        tokens: pieces, best first, the one that was written among them.
        probabilities: (token,) of the whole vocabulary.
        written: index of the token that was written.
        vocabulary: number of tokens in the vocabulary.
    """
    names = candidate_names(tokens, vocabulary - len(tokens))
    marker = {
        "color": DECODER,
        "opacity": np.where(np.arange(len(names)) == written, 1.0, 0.45),
        "pattern": {"shape": [*[""] * len(tokens), "/"]},
    }
    # Without a text font for the selection Plotly fails on a click.
    click = {"selected": {"textfont": {"color": GUIDE}}, "unselected": {"textfont": {"color": GUIDE}}}
    return figure(
        [candidate_bars(names, with_rest(probabilities), "probability", marker, **click)],
        height=90 + 22 * len(names),
        margin={"l": 21 + text_width(names)},
        xaxis=PERCENT | {"title": "probability, whole vocabulary"},
        yaxis=candidate_axis(names, written),
        # A bar may be too short to hit, so its whole row shows the hover text.
        hovermode="y",
    )


@dataclass(frozen=True, kw_only=True)
class Alternatives(Form):
    """The most probable tokens at one position as bars, of which a click chooses one."""

    tokens: Sequence[str]
    """pieces, best first"""
    probabilities: Array
    """(token,)"""
    written: int
    """index of the token that was written"""
    vocabulary: int
    """number of tokens in the vocabulary"""

    def draw(self) -> StableFigure:
        return alternative_bars(self.tokens, self.probabilities, self.written, self.vocabulary)

    def arrays(self) -> dict[str, Array]:
        return {"probabilities": self.probabilities}


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
