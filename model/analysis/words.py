"""Merging pieces into words, and hiding special tokens, in a table of weights.

A table is (..., query, key). A group is a tuple of neighbouring positions that are shown as one row or column.
"""

import unicodedata
from collections.abc import Sequence

import numpy as np

from model.analysis.distributions import ratio
from model.trace import Array, Attention

WORD_START = "\u2581"

Groups = tuple[tuple[int, ...], ...]


def is_punctuation(tokens: Sequence[str]) -> Array:
    """bool (token,): True for a piece that consists of punctuation only."""
    return np.array([_punctuation(token) for token in tokens], dtype=bool)


def split_at_word_starts(tokens: Sequence[str], special: Sequence[bool]) -> list[list[int]]:
    """Positions of each word with its punctuation: U+2581 starts a word; a `special` token stands alone."""
    groups: list[list[int]] = []
    for position, token in enumerate(tokens):
        alone = special[position] or (position > 0 and special[position - 1])
        if alone or not groups or token.startswith(WORD_START):
            groups.append([])
        groups[-1].append(position)
    return groups


def word_groups(tokens: Sequence[str], special: Sequence[bool], words: Sequence[int | None] | None = None) -> Groups:
    """The positions of each word: the pieces that have the same number in `words`, as `Tokens.words` has them; without
    these, its U+2581 piece and the pieces that follow, byte pieces included.

    Special tokens stand alone, and so does punctuation at either end of a word; punctuation inside a word
    ("didn't") belongs to it.
    """
    groups = split_at_word_starts(tokens, special) if words is None else _of_one_number(words)
    return tuple(part for group in groups for part in _split_off_punctuation(tokens, group))


def _of_one_number(words: Sequence[int | None]) -> list[list[int]]:
    """Neighbouring positions of the same word; one without a number stands alone."""
    groups: list[list[int]] = []
    for position, word in enumerate(words):
        if not position or word is None or word != words[position - 1]:
            groups.append([])
        groups[-1].append(position)
    return groups


def row_tokens(attention: Attention) -> tuple[str, ...]:
    """The tokens that name the words of an attention's rows.

    A row of cross-attention looks for the source of the token that it predicts, so its rows are grouped by the words
    predicted; rows of self-attention are grouped by the words read.
    """
    return attention.predicts.labels if _names_predicted(attention) else attention.query_tokens


def attention_words(attention: Attention) -> tuple[Groups, Groups]:
    """The words that form the rows and the columns of an attention; rows as in `row_tokens`."""
    rows = attention.predicts if _names_predicted(attention) else None
    queries = (rows.special, rows.words) if rows else (attention.query_special, attention.query_words)
    keys = attention.key_special, attention.key_words
    return word_groups(row_tokens(attention), *queries), word_groups(attention.key_tokens, *keys)


def _names_predicted(attention: Attention) -> bool:
    return attention.crosses and attention.predicts is not None


def merge(table: Array, queries: Groups, keys: Groups) -> Array:
    """Sum over the keys of each group, mean over its queries; rows that sum to 1 still do.

    Args:
        table: (..., query, key).
        queries, keys: groups that cover all positions, in order.

    Returns:
        (..., query group, key group)
    """
    return add_up(table, queries, keys) / np.array([[len(group)] for group in queries], dtype=table.dtype)


def add_up(table: Array, rows: Groups, columns: Groups) -> Array:
    """Sum over the rows and columns of each group; arguments as of `merge`. The sum of the table stays what it is."""
    summed = np.add.reduceat(table, [group[0] for group in columns], axis=-1)
    return np.add.reduceat(summed, [group[0] for group in rows], axis=-2)


def merge_mask(mask: Array, queries: Groups, keys: Groups) -> Array:
    """bool (..., query, key) -> bool (..., query group, key group): True where any pair of pieces is allowed."""
    return merge(mask.astype(float), queries, keys) > 0


def hide_keys(table: Array, hidden: Array, renormalise: bool = False) -> tuple[Array, Array]:
    """Remove some keys from a table, and return the share of each row that was removed.

    Args:
        table: (..., query, key), nonnegative.
        hidden: bool (key,).
        renormalise: scale each row back to its former sum; a row with nothing left becomes NaN.

    Returns:
        (..., query, remaining key), and (..., query) from 0 to 1: 0 for a row that summed to 0.
    """
    before = table.sum(axis=-1)
    remaining, removed = table[..., ~hidden], ratio(table[..., hidden].sum(axis=-1), before)
    if not renormalise:
        return remaining, removed
    # Divide first: what is left may be so small that before / left overflows.
    shares = ratio(remaining, remaining.sum(axis=-1, keepdims=True), np.nan)
    return shares * before[..., None], removed


def _split_off_punctuation(tokens: Sequence[str], group: Sequence[int]) -> list[tuple[int, ...]]:
    """The group with each punctuation piece at its start and end as a group of its own."""
    core = [i for i, position in enumerate(group) if not _punctuation(tokens[position])]
    if not core:
        return [(position,) for position in group]
    first, last = core[0], core[-1] + 1
    return [*((p,) for p in group[:first]), tuple(group[first:last]), *((p,) for p in group[last:])]


def _punctuation(token: str) -> bool:
    text = token.removeprefix(WORD_START)
    return bool(text) and all(unicodedata.category(character).startswith("P") for character in text)
