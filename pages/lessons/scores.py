"""Lesson 3: scaled dot-product attention, equation 1 of the paper."""

import numpy as np

from model.analysis.heads.softmax import product_statistics, softmax_at, softmax_jacobian
from model.run import Run
from pages.lessons.reading import Facts, row_of_pronoun

LOOKUP_WEIGHT = 0.9
"""on one key, from which on a row is little more than a lookup"""


def product(run: Run) -> Facts:
    """The score of the row's strongest key, as a sum of d_k products."""
    row, name, weights = row_of_pronoun(run)
    attention, head, best = run.attention, run.head, int(weights.argmax())
    products = attention.q[head, row].astype(np.float64) * attention.k[head, best]
    return {
        "name": name,
        "key": attention.key_tokens[best],
        "count": len(products),
        "positive": int((products > 0).sum()),
        "rise": products[products > 0].sum(),
        "fall": products[products < 0].sum(),
        "score": products.sum(),
        "error": abs(products.sum() - attention.scores[head, row, best]),
    }


def difference(run: Run) -> Facts:
    """The ratio of the row's two largest weights, from the difference of their scores."""
    row, name, weights = row_of_pronoun(run)
    attention = run.attention
    if attention.mask[run.head, row].sum() < 2:
        return {"name": name, "alone": True}
    scores = attention.pre_softmax[run.head, row].astype(np.float64)
    two = np.argsort(-weights)[:2]
    apart = scores[two[0]] - scores[two[1]]
    return {
        "name": name,
        "alone": False,
        "keys": [attention.key_tokens[i] for i in two],
        "scores": scores[two],
        "weights": weights[two],
        "apart": apart,
        "ratio": weights[two[0]] / weights[two[1]],
        "power": np.exp(apart),
    }


def division(run: Run) -> Facts:
    """Variance of the products and the mean of the largest weights, with and without the division."""
    attention, head = run.attention, run.head
    undivided = softmax_at(attention.scores[head], attention.mask[head], 1.0).max(axis=-1)
    return {
        "statistics": product_statistics(attention, head),
        "plain": attention.pattern[head].max(axis=-1).mean(),
        "sharp": undivided.mean(),
        "rows": len(undivided),
        "most": LOOKUP_WEIGHT,
        "lookups": int((undivided > LOOKUP_WEIGHT).sum()),
    }


def gradient(run: Run) -> Facts:
    """The largest eigenvalue of the softmax's Jacobian with and without the division, and what it means for q k."""
    attention, rows = run.attention, range(len(run.attention.query_tokens))
    jacobians = [softmax_jacobian(attention, run.head, row, 1.0, (1.0, attention.scale)).largest for row in rows]
    (plain, sharp), (most, _) = np.mean(jacobians, axis=0), np.max(jacobians, axis=0)
    return {"plain": plain, "sharp": sharp, "most": most, "divided": plain * attention.scale}
