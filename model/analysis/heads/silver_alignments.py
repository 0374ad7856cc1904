"""Which words translate which, learned from sentence pairs alone, and how far a head's attention is from it.

Alignments by a statistical model are called silver, those by people gold. The model here is IBM model 2 with the prior
of fast_align (Dyer et al. 2013, section 3): positions near the diagonal are likelier. Both directions are trained; a
link on which they agree is sure, any other possible, as in the gold alignments of Och and Ney (2003).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from model.trace import Array, Tokens, Trace

METHOD = "IBM model 2 with the diagonal prior of fast_align"
TENSION, NO_WORD, ITERATIONS = 4.0, 0.08, 5
"""strength of the diagonal and share of words that translate none, fast_align's defaults; rounds of EM"""
WORD = re.compile(r"\w+|[^\w\s]")

Pair = tuple[str, str]


@dataclass(frozen=True)
class Links:
    """The links of one sentence pair."""

    sure: Array
    """bool (target word, source word)"""
    possible: Array
    """bool (target word, source word); sure links are possible, too"""


def silver_alignments(pairs: Sequence[Pair], others: Sequence[Pair] = ()) -> list[Links]:
    """The links of each of `pairs`; the model learns from these and from `others`."""
    words = [tuple(WORD.findall(text.lower()) for text in pair) for pair in (*others, *pairs)]
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


def count_links(trace: Trace, layer: int, links: Links) -> Array:
    """(heads, 4): links that each head of a cross-attention makes, those that are sure, those possible; all sure links.

    A head links each target word to the source word with the largest weight in the rows that predict the target word,
    weights summed over the pieces of a word; special tokens belong to no word.
    """
    attention = trace.attention("cross", layer)
    target = _pieces_of_words(attention.predicts)
    source = _pieces_of_words(trace.streams["encoder"].tokens)
    weights = target.astype(float) @ attention.pattern @ source.T
    made = weights.argmax(axis=-1)[..., None] == np.arange(len(source))
    counts = [each.sum(axis=(1, 2)) for each in (made, made & links.sure, made & links.possible)]
    return np.stack([*counts, np.full(len(made), links.sure.sum())], axis=-1)


def alignment_error_rate(counts: Array) -> Array:
    """(heads, 4) from `count_links`, summed over sentences -> (heads,): 1 - (|A S| + |A P|) / (|A| + |S|)."""
    made, sure, possible, all_sure = np.moveaxis(counts, -1, 0)
    return 1 - (sure + possible) / (made + all_sure)


def _pieces_of_words(tokens: Tokens) -> Array:
    """bool (word, piece): the pieces that each word of the text consists of, by their characters."""
    words = [match.span() for match in WORD.finditer(tokens.text)]
    spans = [span or (-1, -1) for span in tokens.spans]
    return np.array([[start < last and first < end for first, last in spans] for start, end in words], dtype=bool)
