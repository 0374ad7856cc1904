"""Lesson 0: the three operations that attention is made of, for those who have not met them."""

import numpy as np

from model.analysis.heads.softmax import softmax_at
from model.run import Run
from pages.lessons.reading import Facts, row_of_pronoun

FEW = 3
"""numbers that are small enough to be multiplied by hand"""


def dot_product(run: Run) -> Facts:
    """Three components of a query and of its strongest key, rounded, and what becomes of them."""
    row, name, weights = row_of_pronoun(run)
    attention, key = run.attention, int(weights.argmax())
    q, k = (side[run.head, at].astype(np.float64) for side, at in ((attention.q, row), (attention.k, key)))
    largest = np.sort(np.argsort(-np.abs(q * k))[:FEW])
    few = [np.round(side[largest], 1) for side in (q, k)]
    return {
        "name": name,
        "key": attention.key_tokens[key],
        "dimensions": largest.tolist(),
        "q": few[0].tolist(),
        "k": few[1].tolist(),
        "products": (few[0] * few[1]).tolist(),
        "right": float(few[0] @ few[1]),
        "wrong": {"of_sums": float(few[0].sum() * few[1].sum()), "sum": float(sum(few).sum())},
        "d_k": len(q),
        "whole": float(q @ k),
        "score": float(attention.scores[run.head, row, key]),
    }


def matrix_product(run: Run) -> Facts:
    """The shapes of the product X W_Q of the chosen head, and one of its numbers as a dot product."""
    attention, head = run.attention, run.head
    x, w_q, b_q = attention.query_input, attention.projections.w_q[head], attention.projections.b_q[head]
    row = x[-1].astype(np.float64)
    return {
        "n": len(x),
        "d": x.shape[-1],
        "d_k": w_q.shape[-1],
        "one": float(row @ w_q[:, 0] + b_q[0]),
        "q": float(attention.q[head, -1, 0]),
        "turned": attention.rotary is not None or attention.qk_norm is not None,
    }


def softmax(run: Run) -> Facts:
    """The three largest scaled scores of a row, rounded, with their softmax; of the row where they lie closest."""
    attention, head = run.attention, run.head
    scores, mask = attention.pre_softmax[head], attention.mask[head]
    rows = np.flatnonzero(mask.sum(axis=-1) >= FEW)
    if not len(rows):
        return None
    largest = -np.sort(-np.where(mask, scores, -np.inf)[rows], axis=-1)[:, :FEW]
    place = int(np.ptp(largest, axis=-1).argmin())
    few = np.round(largest[place].astype(np.float64), 1)
    right = softmax_at(few, np.ones(FEW, bool), 1.0)
    return {
        "query": attention.query_tokens[rows[place]],
        "scores": few.tolist(),
        "powers": np.exp(few - few[0]).tolist(),
        "right": right.tolist(),
        "of_all": float(attention.pattern[head, rows[place]].sum()),
        "keys": int(mask[rows[place]].sum()),
    }
