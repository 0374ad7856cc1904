"""Two tables of attention weights side by side: which rows and columns they share, and how far those lie apart.

A row is shared where both sides have the same token at the same place of a common subsequence of their tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np

from model.analysis.head_summary import entropies
from model.analysis.words import merge, merge_mask, word_groups
from model.trace import Array, Attention

Pair = tuple[int | None, int | None]
"""a position on the left and on the right; None where that side has no such token"""


@dataclass(frozen=True)
class Side:
    """One head's weights, and what their rows and columns are known by."""

    queries: tuple[str, ...]
    keys: tuple[str, ...]
    weights: Array
    """(query, key)"""
    mask: Array
    """bool (query, key): True = may look"""


@dataclass(frozen=True)
class Joined:
    """Both sides' rows and columns in one order, and their difference."""

    rows: tuple[Pair, ...]
    keys: tuple[Pair, ...]
    difference: Array
    """(row, key): right minus left; NaN where a side lacks the row or the key"""
    distances: Array
    """(row,): total variation distance, 0 to 1, of the two sides' weights; NaN where a side lacks the row"""


def piece_table(attention: Attention, head: int) -> Side:
    """A head as it is: a row a query token, a column a key token."""
    return Side(attention.query_tokens, attention.key_tokens, attention.pattern[head], attention.mask[head])


def word_table(attention: Attention, head: int) -> Side:
    """A head with pieces merged into words: summed over a word's keys, averaged over its queries."""
    groups = [word_groups(tokens) for tokens in (attention.query_tokens, attention.key_tokens)]
    return Side(
        _words(attention.query_tokens, groups[0]),
        _words(attention.key_tokens, groups[1]),
        merge(attention.pattern[head], *groups),
        merge_mask(attention.mask[head], *groups),
    )


def align_tokens(left: Sequence[str], right: Sequence[str]) -> tuple[Pair, ...]:
    """Every position of both, in order; those of equal tokens, as difflib matches them, are one pair."""
    pairs: list[Pair] = []
    for what, i, j, k, m in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if what == "equal":
            pairs += zip(range(i, j), range(k, m), strict=True)
        else:
            pairs += [(one, None) for one in range(i, j)]
            pairs += [(None, other) for other in range(k, m)]
    return tuple(pairs)


def join(left: Side, right: Side) -> Joined:
    """Right minus left, cell by cell, where both have the cell.

    A row's total variation distance is half the sum of |right - left| over the keys of both sides; a key that only
    one side has counts with all its weight.
    """
    rows, keys = align_tokens(left.queries, right.queries), align_tokens(left.keys, right.keys)
    one, other = (_spread(side.weights, rows, keys, at) for at, side in enumerate((left, right)))
    shared_rows, shared_keys = (np.array([None not in pair for pair in pairs], dtype=bool) for pairs in (rows, keys))
    difference = np.where(shared_rows[:, None] & shared_keys, other - one, np.nan)
    distances = np.where(shared_rows, np.abs(other - one).sum(axis=1, dtype=np.float64) / 2, np.nan)
    return Joined(rows, keys, difference, distances)


def mean_entropy(side: Side) -> float:
    """Bits, the mean of all rows."""
    return float(entropies(side.weights).mean())


def largest_weight(side: Side) -> tuple[int, int]:
    """Row and column of the largest weight; the first where several are equal."""
    row, key = np.unravel_index(int(side.weights.argmax()), side.weights.shape)
    return int(row), int(key)


def _words(tokens: Sequence[str], groups: Sequence[Sequence[int]]) -> tuple[str, ...]:
    return tuple("".join(tokens[position] for position in group) for group in groups)


def _spread(weights: Array, rows: Sequence[Pair], keys: Sequence[Pair], side: int) -> Array:
    """(row, key) of both sides' order: the weights of one side, and 0 where it has no such cell."""
    spread = np.zeros((len(rows), len(keys)), dtype=weights.dtype)
    ours = [[i for i, pair in enumerate(pairs) if pair[side] is not None] for pairs in (rows, keys)]
    spread[np.ix_(*ours)] = weights
    return spread
