"""Two tables side by side: rows and columns that belong together, their difference, and how far rows lie apart."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.analysis.heads.head_tables import TableOptions, head_tables
from model.analysis.heads.two_heads import Side, align_tokens, join, largest_weight, piece_table, word_table
from tests.model.strategies import KINDS

tokens = st.lists(st.sampled_from("abcd"), min_size=1, max_size=10).map(tuple)


@st.composite
def sides(draw: st.DrawFn) -> Side:
    queries, keys = draw(tokens), draw(tokens)
    weights = np.random.default_rng(draw(st.integers(0, 99))).dirichlet(np.ones(len(keys)), len(queries))
    return Side(queries, keys, weights, np.ones(weights.shape, dtype=bool))


@given(tokens, tokens)
def test_each_position_of_both_sides_comes_once_in_order_and_pairs_are_equal_tokens(
    left: tuple[str, ...], right: tuple[str, ...]
) -> None:
    pairs = align_tokens(left, right)
    assert [one for one, _ in pairs if one is not None] == list(range(len(left)))
    assert [other for _, other in pairs if other is not None] == list(range(len(right)))
    assert all(left[one] == right[other] for one, other in pairs if None not in (one, other))


@given(tokens)
def test_a_sentence_beside_itself_is_shared_altogether(sentence: tuple[str, ...]) -> None:
    assert align_tokens(sentence, sentence) == tuple((i, i) for i in range(len(sentence)))


@given(sides(), sides())
def test_the_difference_is_right_minus_left_where_both_have_the_cell_and_nowhere_else(left: Side, right: Side) -> None:
    joined = join(left, right)
    for i, row in enumerate(joined.rows):
        for j, key in enumerate(joined.keys):
            found = joined.difference[i, j]
            if None in (*row, *key):
                assert np.isnan(found)
            else:
                assert found == right.weights[row[1], key[1]] - left.weights[row[0], key[0]]


@given(sides(), sides())
def test_a_distance_is_between_none_and_one_and_counts_the_keys_of_one_side(left: Side, right: Side) -> None:
    joined = join(left, right)
    for pair, distance in zip(joined.rows, joined.distances, strict=True):
        if None in pair:
            assert np.isnan(distance)
            continue
        assert -1e-12 <= distance <= 1 + 1e-12
        # The other way to write it: what is left after all that both rows have in common.
        common = sum(
            min(left.weights[pair[0], one], right.weights[pair[1], other])
            for one, other in joined.keys
            if None not in (one, other)
        )
        assert distance == pytest.approx(1 - common)


def test_the_largest_cell_is_that_of_the_weights() -> None:
    weights = np.array([[0.5, 0.5], [0.0, 1.0]])
    side = Side(("a", "b"), ("c", "d"), weights, np.ones((2, 2), dtype=bool))
    assert largest_weight(side) == (1, 1)


def test_a_table_of_pieces_is_the_heads_own(trace) -> None:
    attention = trace.attention("encoder_self", 1)
    side = piece_table(attention, 2)
    assert (side.queries, side.keys) == (attention.query_tokens, attention.key_tokens)
    np.testing.assert_array_equal(side.weights, attention.pattern[2])
    np.testing.assert_array_equal(side.mask, attention.mask[2])


@pytest.mark.parametrize("kind", KINDS)
def test_two_heads_and_all_heads_merge_the_same_rows_into_words(trace, kind: str) -> None:
    attention, tables = trace.attention(kind, 1), head_tables(trace, kind, TableOptions(words=True))
    side = word_table(attention, 3)
    np.testing.assert_array_equal(side.weights, tables.values[1, 3])
    np.testing.assert_array_equal(side.mask, tables.mask[1, 3])
    rows = trace.next_tokens if kind == "cross" else attention.query_tokens
    assert side.queries == tuple("".join(rows[i] for i in word) for word in tables.queries)
    assert side.keys == tuple("".join(attention.key_tokens[i] for i in word) for word in tables.keys)
