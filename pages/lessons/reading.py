"""What several lessons read off a run."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from model.interventions import Intervention
from model.run import Run
from model.trace import Array, Attention
from viz.tokens import word

Facts = Mapping[str, Any] | None
"""what the texts of a question name; None: the run cannot answer it"""


def find(tokens: Sequence[str], wanted: str, otherwise: int) -> int:
    """Position of the first token that is this word; `otherwise` where the sentence does not have it."""
    return next((i for i, token in enumerate(tokens) if word(token) == wanted), min(otherwise, len(tokens) - 1))


def text_cells(attention: Attention, head: int) -> Array:
    """(query, key) weights of a head, 0 on keys such as <s> and </s> and on each token's own key."""
    weights = np.where(np.array(attention.key_special), 0.0, attention.pattern[head])
    if not attention.crosses:
        np.fill_diagonal(weights, 0.0)
    return weights


def row_of_pronoun(run: Run) -> tuple[int, str, Array]:
    """Position, token and weights (key,) of the row of “it”, or of the middle row."""
    attention = run.attention
    row = find(attention.query_tokens, "it", len(attention.query_tokens) // 2)
    return row, attention.query_tokens[row], attention.pattern[run.head, row].astype(np.float64)


def log_p_change(run: Run, *more: Intervention) -> float:
    """Nats by which log p of the run's text changes with more changes in the model."""
    changed = run.forced(*run.trace.interventions, *more)
    return changed.trace.log_probability - run.trace.log_probability


def lengths_of(vectors: Array) -> Array:
    """(...,) lengths of (..., d) vectors."""
    return np.linalg.norm(vectors.astype(np.float64), axis=-1)
