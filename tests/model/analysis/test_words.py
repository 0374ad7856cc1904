"""Words and hidden tokens keep the books of attention weights (claims 15 and 16)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from model.analysis.words import hide_keys, is_punctuation, merge, merge_mask, word_groups

PIECES = ("▁a", "b", "▁", "'", ".", "▁(", "<0xE2>", "<0x9D>", "<s>", "</s>", "▁c", "…")
sentences = st.lists(st.sampled_from(PIECES), min_size=1, max_size=12)


def special(tokens: list[str]) -> np.ndarray:
    return np.array([token in ("<s>", "</s>") for token in tokens])


def groups_of(tokens: list[str]) -> tuple[tuple[int, ...], ...]:
    return word_groups(tokens, special(tokens))


def patterns(queries: int, keys: int) -> st.SearchStrategy[np.ndarray]:
    """Two heads of weights whose rows sum to 1."""
    numbers = arrays.arrays(np.float64, (2, queries, keys), elements=st.floats(0, 1))
    return numbers.map(lambda raw: (raw + 1e-3) / (raw + 1e-3).sum(axis=-1, keepdims=True))


tables = st.tuples(sentences, sentences).flatmap(
    lambda pair: st.tuples(st.just(pair[0]), st.just(pair[1]), patterns(len(pair[0]), len(pair[1])))
)


@pytest.mark.parametrize(
    "words",
    [
        [["▁über", "quer", "t"], ["▁die"], ["</s>"]],
        [["<s>"], ["a", "b"], ["</s>"]],
        [["▁th", "<0xE2>", "<0x80>"], ["▁", "<0xF0>"], ["!"]],
        [["▁("], ["didn", "'", "t"], [")"], ["."]],
        [["▁“"], ["…"]],
    ],
)
def test_a_marker_starts_a_word_and_special_tokens_and_punctuation_at_its_ends_stay_alone(words) -> None:
    tokens = [token for word in words for token in word]
    assert [[tokens[i] for i in group] for group in groups_of(tokens)] == words


@given(sentences)
def test_each_position_is_in_one_word_and_words_are_in_order(tokens: list[str]) -> None:
    assert [i for group in groups_of(tokens) for i in group] == list(range(len(tokens)))


@given(tables)
def test_rows_of_words_still_sum_to_one(table: tuple[list[str], list[str], np.ndarray]) -> None:
    queries, keys, pattern = table
    merged = merge(pattern, groups_of(queries), groups_of(keys))
    assert merged.sum(axis=-1) == pytest.approx(1)
    assert (merged >= 0).all()


def test_keys_are_summed_and_queries_averaged() -> None:
    table = np.array([[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]])
    assert merge(table, ((0, 1),), ((0, 1), (2,))) == pytest.approx(np.array([[0.55, 0.45]]))


def test_a_word_may_look_where_any_of_its_pieces_may() -> None:
    causal = np.tri(4, dtype=bool)
    groups = ((0,), (1, 2), (3,))
    assert np.array_equal(merge_mask(causal, groups, groups), np.tri(3, dtype=bool))


@given(tables)
def test_what_is_hidden_and_what_is_left_make_up_the_row(table: tuple[list[str], list[str], np.ndarray]) -> None:
    _, keys, pattern = table
    hidden = special(keys)
    kept, removed = hide_keys(pattern, hidden)
    assert kept.shape[-1] == (~hidden).sum()
    assert kept.sum(axis=-1) + removed == pytest.approx(1)
    assert removed == pytest.approx(pattern[..., hidden].sum(axis=-1))


@given(tables)
def test_renormalised_rows_sum_to_one_again_or_are_blank(table: tuple[list[str], list[str], np.ndarray]) -> None:
    _, keys, pattern = table
    kept, _ = hide_keys(pattern, special(keys), renormalise=True)
    sums = kept.sum(axis=-1)
    assert sums[~np.isnan(sums)] == pytest.approx(0 if special(keys).all() else 1)


def test_a_row_of_which_nothing_is_left_is_blank_and_lost_everything() -> None:
    kept, removed = hide_keys(np.array([[1.0, 0.0, 0.0], [0.5, 0.25, 0.25]]), np.array([True, False, False]), True)
    assert np.isnan(kept[0]).all()
    assert kept[1] == pytest.approx([0.5, 0.5])
    assert list(removed) == [1, 0.5]


def test_punctuation_is_told_from_text() -> None:
    tokens = ["▁.", "'", "▁", "<s>", "t", "▁“", "€"]
    assert [token for token, is_one in zip(tokens, is_punctuation(tokens), strict=True) if is_one] == ["▁.", "'", "▁“"]
