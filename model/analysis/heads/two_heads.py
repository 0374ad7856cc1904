"""Two tables of attention weights side by side: which rows and columns they share, and how much those differ.

Rows and columns are matched by token: positions of a common subsequence of both sides' tokens are one row or column.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np

from model.analysis.distributions import total_variation
from model.analysis.words import attention_words, merge, merge_mask, row_tokens
from model.trace import Array, Attention

Pair = tuple[int | None, int | None]
"""a position on the left and on the right; None where that side has no such token"""


@dataclass(frozen=True)
class Side:
    """One head's weights, and the tokens by which its rows and columns are matched."""

    queries: tuple[str, ...]
    keys: tuple[str, ...]
    weights: Array
    """(query, key)"""
    mask: Array
    """bool (query, key): True = allowed"""


@dataclass(frozen=True)
class Joined:
    """The rows and columns of both sides in one order, and their difference."""

    rows: tuple[Pair, ...]
    keys: tuple[Pair, ...]
    difference: Array
    """(row, key): right minus left; NaN where a side lacks the row or the key"""
    distances: Array
    """(row,): total variation distance of the two sides' weights, 0 to 1; NaN where a side lacks the row"""


def piece_table(attention: Attention, head: int) -> Side:
    """One head, with a row for each query token and a column for each key token."""
    return Side(attention.query_tokens, attention.key_tokens, attention.pattern[head], attention.mask[head])


def word_table(attention: Attention, head: int) -> Side:
    """One head with pieces merged into words, as `attention_words` groups them."""
    queries, keys = attention_words(attention)
    rows = row_tokens(attention)
    return Side(
        tuple("".join(rows[position] for position in group) for group in queries),
        tuple("".join(attention.key_tokens[position] for position in group) for group in keys),
        merge(attention.pattern[head], queries, keys),
        merge_mask(attention.mask[head], queries, keys),
    )


def align_tokens(left: Sequence[str], right: Sequence[str]) -> tuple[Pair, ...]:
    """Every position of both sides, in order; those of equal tokens, as difflib matches them, are one pair."""
    pairs: list[Pair] = []
    for operation, i, j, k, m in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if operation == "equal":
            pairs += zip(range(i, j), range(k, m), strict=True)
        else:
            pairs += [(one, None) for one in range(i, j)]
            pairs += [(None, other) for other in range(k, m)]
    return tuple(pairs)


def join(left: Side, right: Side) -> Joined:
    """Right minus left in each cell that both sides have.

    A key that only one side has counts with all its weight in a row's total variation distance.
    """
    rows, keys = align_tokens(left.queries, right.queries), align_tokens(left.keys, right.keys)
    one, other = (_spread(side.weights, rows, keys, at) for at, side in enumerate((left, right)))
    shared_rows, shared_keys = (np.array([None not in pair for pair in pairs], dtype=bool) for pairs in (rows, keys))
    difference = np.where(shared_rows[:, None] & shared_keys, other - one, np.nan)
    distances = np.where(shared_rows, total_variation(one, other), np.nan)
    return Joined(rows, keys, difference, distances)


def largest_weight(side: Side) -> tuple[int, int]:
    """Row and column of the largest weight; the first where several are equal."""
    row, key = np.unravel_index(int(side.weights.argmax()), side.weights.shape)
    return int(row), int(key)


def _spread(weights: Array, rows: Sequence[Pair], keys: Sequence[Pair], side: int) -> Array:
    """(row, key) in the common order: the weights of one side, 0 where it has no such cell."""
    spread = np.zeros((len(rows), len(keys)), dtype=weights.dtype)
    own = [[i for i, pair in enumerate(pairs) if pair[side] is not None] for pairs in (rows, keys)]
    spread[np.ix_(*own)] = weights
    return spread
