"""Lesson 2: attention as a dictionary whose entries are all read at once, each by its weight."""

import numpy as np

from model.analysis.distributions import entropy
from model.analysis.heads.softmax import softmax_at
from model.run import Run
from pages.lessons.reading import Facts, lengths_of, row_of_pronoun


def mixture(run: Run) -> Facts:
    """The largest weight of the row, and as how many equal keys it counts."""
    _, name, weights = row_of_pronoun(run)
    best, bits = int(weights.argmax()), float(entropy(weights))
    facts = {"name": name, "key": run.attention.key_tokens[best], "weight": weights[best], "sum": weights.sum()}
    return facts | {"bits": bits, "equal": 2**bits}


def limits(run: Run) -> Facts:
    """The largest weight of the row at a low and at a high temperature."""
    row, name, weights = row_of_pronoun(run)
    attention = run.attention
    scores, mask = attention.pre_softmax[run.head, row], attention.mask[run.head, row]
    cold, hot = (float(softmax_at(scores, mask, tau).max()) for tau in (0.05, 20.0))
    key = attention.key_tokens[int(weights.argmax())]
    return {"name": name, "key": key, "cold": cold, "hot": hot, "even": 1 / mask.sum()}


def values(run: Run) -> Facts:
    """The weights of the row times the lengths of the values, and their sum beside the model's z."""
    row, name, weights = row_of_pronoun(run)
    attention, vectors = run.attention, run.attention.v[run.head].astype(np.float64)
    lengths = lengths_of(vectors)
    parts = weights * lengths
    return {
        "name": name,
        "count": len(vectors),
        "error": np.abs(weights @ vectors - attention.z[run.head, row]).max(),
        "shortest": lengths.min(),
        "longest": lengths.max(),
        "largest": parts.max(),
        "key": attention.key_tokens[int(parts.argmax())],
    }


def direction(run: Run) -> Facts:
    """The weight of the strongest key of the row, and of the same pair with the roles exchanged."""
    row, name, weights = row_of_pronoun(run)
    attention, head = run.attention, run.head
    if attention.crosses:
        return None
    best = int(np.where(np.arange(len(weights)) == row, 0, weights).argmax())
    scores = attention.pre_softmax[head]
    return {
        "name": name,
        "key": attention.key_tokens[best],
        "weight": weights[best],
        "score": scores[row, best],
        "hidden": not attention.mask[head, best, row],
        "back": attention.pattern[head, best, row],
        "score_back": scores[best, row],
    }
