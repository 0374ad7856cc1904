"""Lesson 3: scaled dot-product attention, equation 1 of the paper."""

import numpy as np

from model.analysis.heads.softmax import product_statistics, softmax_at, softmax_jacobian
from model.analysis.written import score_parts
from model.analysis.written.of_scores import weight_with_score
from model.analysis.written.of_stream import EMBEDDING, POSITION
from model.run import Run
from pages.lessons.reading import Facts, row_of_pronoun
from pages.views.part_pictures import part_label

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


def places(run: Run) -> Facts:
    """What content and position of query and key add to the score of the row's strongest key, in the first layer."""
    row, name, weights = row_of_pronoun(run)
    best = int(weights.argmax())
    queries, keys, pairs = run.compute(score_parts, run.trace, run.kind, run.layer, run.head, row, best)
    if run.layer or POSITION not in queries or POSITION not in keys:
        return None
    own, other = ([names.index(part) for part in (EMBEDDING, POSITION)] for names in (queries, keys))
    return {
        "name": name,
        "key": run.attention.key_tokens[best],
        "score": pairs.sum(),
        "content": pairs[own[0], other[0]],
        "mixed": pairs[own[0], other[1]] + pairs[own[1], other[0]],
        "position": pairs[own[1], other[1]],
    }


def sides(run: Run) -> Facts:
    """The largest part of the query's side of the row's largest score, and the weight without it."""
    row, name, weights = row_of_pronoun(run)
    best = int(weights.argmax())
    queries, keys, pairs = run.compute(score_parts, run.trace, run.kind, run.layer, run.head, row, best)
    terms = pairs.sum(axis=1)
    part = int(np.abs(terms).argmax())
    without = float(pairs.sum() - terms[part])
    return {
        "name": name,
        "key": run.attention.key_tokens[best],
        "counts": (len(queries), len(keys)),
        "score": pairs.sum(),
        "part": part_label(queries[part]),
        "term": terms[part],
        "without": without,
        "weight": weights[best],
        "less": weight_with_score(run.attention, run.head, row, best, without),
    }


def root(run: Run) -> Facts:
    """How far apart the products of this head lie, and the largest of the whole run."""
    statistics = product_statistics(run.attention, run.head)
    largest = max(float(np.abs(one.scores).max()) for one in run.trace.attentions.values())
    return {"d_k": run.attention.d_k, "spread": statistics.variance**0.5, "largest": largest}
