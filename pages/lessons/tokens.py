"""Tokens in the text of an answer, and finding them."""

from collections.abc import Sequence

import numpy as np

from model.trace import Array, Attention
from viz.tokens import as_markdown, labels, word


def quote(token: str) -> str:
    """A token in quotation marks, as Markdown."""
    return f"“{as_markdown(labels([token])[0])}”"


def find(tokens: Sequence[str], wanted: str, otherwise: int) -> int:
    """Position of the first token that is this word; `otherwise` where the sentence does not have it."""
    return next((i for i, token in enumerate(tokens) if word(token) == wanted), min(otherwise, len(tokens) - 1))


def text_cells(attention: Attention, head: int) -> Array:
    """(query, key) weights of a head, 0 on keys such as <s> and </s> and on each token's own key."""
    weights = np.where(np.array(attention.key_special), 0.0, attention.pattern[head])
    if not attention.crosses:
        np.fill_diagonal(weights, 0.0)
    return weights
