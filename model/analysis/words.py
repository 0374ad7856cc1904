"""Pieces as words, and tables without their special tokens: two ways of looking at weights, in plain numpy.

A table here is (..., query, key); a group is the tuple of positions that stand together.
"""

import unicodedata
from collections.abc import Sequence

import numpy as np

from model.network.config import BOS, EOS, PAD, SPECIAL_TOKENS
from model.trace import Array

WORD_START = "\u2581"
MARKS = frozenset(SPECIAL_TOKENS[i] for i in (PAD, BOS, EOS))
"""Tokens that stand for no text."""

Groups = tuple[tuple[int, ...], ...]


def is_special(tokens: Sequence[str]) -> Array:
    """bool (token,): whether it is <s>, </s> or <pad>."""
    return np.array([token in MARKS for token in tokens], dtype=bool)


def is_punctuation(tokens: Sequence[str]) -> Array:
    """bool (token,): whether the piece is punctuation and nothing else."""
    return np.array([_punctuation(token) for token in tokens], dtype=bool)


def word_groups(tokens: Sequence[str]) -> Groups:
    """The positions of each word: U+2581 starts one, and the pieces after it, bytes among them, belong to it.

    Special tokens stay alone, and so does punctuation at either end of a word; within one ("didn't") it
    belongs to it.
    """
    groups: list[list[int]] = []
    for position, token in enumerate(tokens):
        alone = token in MARKS or (position > 0 and tokens[position - 1] in MARKS)
        if alone or not groups or token.startswith(WORD_START):
            groups.append([])
        groups[-1].append(position)
    return tuple(part for group in groups for part in _without_edges(tokens, group))


def merge(table: Array, queries: Groups, keys: Groups) -> Array:
    """Sum over the keys of each group, mean over its queries; rows that sum to 1 still do.

    Args:
        table: (..., query, key).
        queries, keys: groups of positions next to each other, which together are all positions, in order.

    Returns:
        (..., query group, key group)
    """
    summed = np.add.reduceat(table, [group[0] for group in keys], axis=-1)
    sizes = np.array([[len(group)] for group in queries], dtype=table.dtype)
    return np.add.reduceat(summed, [group[0] for group in queries], axis=-2) / sizes


def merge_mask(mask: Array, queries: Groups, keys: Groups) -> Array:
    """bool (..., query, key) -> bool (..., query group, key group): True where any of the pieces may look."""
    return merge(mask.astype(float), queries, keys) > 0


def hide_keys(table: Array, hidden: Array, renormalise: bool = False) -> tuple[Array, Array]:
    """A table without some keys, and the share of each row that went with them.

    Args:
        table: (..., query, key), no negative numbers.
        hidden: bool (key,).
        renormalise: bring each row back to the sum that it had; a row of which nothing is left becomes NaN.

    Returns:
        (..., query, key that stays) and (..., query), 0 to 1; 0 for a row without any mass.
    """
    before = table.sum(axis=-1)
    kept = table[..., ~hidden]
    gone = table[..., hidden].sum(axis=-1)
    removed = np.divide(gone, before, out=np.zeros_like(before), where=before > 0)
    if not renormalise:
        return kept, removed
    left = kept.sum(axis=-1, keepdims=True)
    # Shares first: what is left may be so small that one over it is no number any more.
    shares = np.divide(kept, left, out=np.full_like(kept, np.nan), where=left > 0)
    return shares * before[..., None], removed


def _without_edges(tokens: Sequence[str], group: Sequence[int]) -> list[tuple[int, ...]]:
    """A word, with each punctuation piece at its start and end taken off."""
    core = [i for i, position in enumerate(group) if not _punctuation(tokens[position])]
    if not core:
        return [(position,) for position in group]
    first, last = core[0], core[-1] + 1
    return [*((p,) for p in group[:first]), tuple(group[first:last]), *((p,) for p in group[last:])]


def _punctuation(token: str) -> bool:
    text = token.removeprefix(WORD_START)
    return bool(text) and all(unicodedata.category(character).startswith("P") for character in text)
