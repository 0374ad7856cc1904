"""Which words translate which, learned from sentence pairs alone.

Alignments by a statistical model are called silver, those by people gold. The model here is IBM model 2 with the prior
of fast_align (Dyer et al. 2013, section 3): positions near the diagonal are likelier. Both directions are trained; a
link on which they agree is sure, any other possible, as in the gold alignments of Och and Ney (2003).
"""

import re
from collections.abc import Sequence

import numpy as np

from model.analysis.heads.alignments import WORD, Links, Pair
from model.trace import Array

METHOD = "IBM model 2 with the diagonal prior of fast_align"
TENSION, NO_WORD, ITERATIONS = 4.0, 0.08, 5
"""strength of the diagonal and share of words that translate none, fast_align's defaults; rounds of EM"""


def silver_alignments(pairs: Sequence[Pair], others: Sequence[Pair] = (), word: re.Pattern[str] = WORD) -> list[Links]:
    """The links of each of `pairs`; the model learns from these and from `others`, cut into words by `word`."""
    words = [tuple([part.lower() for part in word.findall(text)] for text in pair) for pair in (*others, *pairs)]
    forward = _align(words, len(pairs))
    backward = _align([(target, source) for source, target in words], len(pairs))
    both = [(there, back.T) for there, back in zip(forward, backward, strict=True)]
    return [Links(there & back, there | back) for there, back in both]


def _align(pairs: Sequence[tuple[list[str], list[str]]], last: int) -> list[Array]:
    """For the last pairs, bool (target word, source word): the source word that explains each target word best, if any.

    p(target word) = sum over the source words of prior(position) t(target word | source word), trained by EM.
    """
    numbers = [
        {word: i for i, word in enumerate(dict.fromkeys(word for pair in pairs for word in pair[side]), 1)}
        for side in (0, 1)
    ]
    sources, targets, rows, priors, shapes = [], [], [], [], []
    row = 0
    for source, target in pairs:
        n, m = len(source) + 1, len(target)  # source word 0 stands for none
        sources.append(np.tile(np.array([0, *(numbers[0][word] for word in source)]), m))
        targets.append(np.repeat(np.array([numbers[1][word] for word in target], dtype=int), n))
        rows.append(np.repeat(np.arange(row, row + m), n))
        priors.append(_prior(len(source), m).ravel())
        shapes.append((m, n))
        row += m
    target_words = len(numbers[1]) + 1
    keys, cell = np.unique(np.concatenate(sources) * target_words + np.concatenate(targets), return_inverse=True)
    of_source, row_of, prior = keys // target_words, np.concatenate(rows), np.concatenate(priors)
    table = np.ones(len(keys))
    for _ in range(ITERATIONS):
        share = prior * table[cell]
        share /= np.bincount(row_of, share)[row_of]
        count = np.bincount(cell, share)
        table = count / np.bincount(of_source, count)[of_source]
    found, scores, end = [], prior * table[cell], len(cell)
    for m, n in reversed(shapes[len(shapes) - last :]):
        best = scores[end - m * n : end].reshape(m, n).argmax(axis=1)
        found.append(best[:, None] == np.arange(1, n))
        end -= m * n
    return found[::-1]


def _prior(sources: int, targets: int) -> Array:
    """(target word, 1 + source word): how likely each position is; first that of no word."""
    apart = np.abs((np.arange(targets)[:, None] + 1) / targets - (np.arange(sources) + 1) / max(sources, 1))
    near = np.exp(-TENSION * apart)
    near *= (1 - NO_WORD) / np.maximum(near.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    return np.concatenate([np.full((targets, 1), NO_WORD), near], axis=1)
