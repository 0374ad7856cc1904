"""Heads are named by what they do: hand-made patterns get the names that a person would give them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from model.analysis.heads.head_summary import MONOTONE, POSITIONAL, HeadSummary, distances, summarise
from model.analysis.heads.head_tables import TableOptions, head_tables, norm_weighted, overview, rollout
from model.analysis.words import merge, word_groups
from model.trace import Attention
from tests.model.strategies import KINDS

N = 10


def attention(pattern: np.ndarray, kind: str = "encoder_self", tokens: tuple[str, ...] = ()) -> Attention:
    """One head with this pattern; all else is zeros."""
    queries, keys = pattern.shape
    tokens = tokens or tuple(f"▁{i}" for i in range(keys))
    rows = tokens if kind != "cross" else tuple(f"▁{i}" for i in range(queries))
    per_query, per_key, square = np.zeros((1, queries, 2)), np.zeros((1, keys, 2)), np.zeros((1, queries, keys))
    return Attention(
        kind, 0, rows, tokens, per_query[0], per_key[0], None, per_query, per_key, per_key, square, square,
        np.ones((1, queries, keys), dtype=bool), np.ones(1), pattern[None], per_query, per_query[0],
        scale=1.0, crosses=kind == "cross", query_special=(False,) * queries,
        key_special=tuple(token in ("<s>", "</s>") for token in tokens),
    )  # fmt: skip


def named(pattern: np.ndarray, *more) -> HeadSummary:
    return summarise(attention(pattern, *more))[0]


def shifted(by: int) -> np.ndarray:
    """All weight on the token `by` further on, or on the last one that there is."""
    return np.eye(N)[np.clip(np.arange(N) + by, 0, N - 1)]


@pytest.mark.parametrize(("by", "name"), [(-1, "previous token"), (0, "same token"), (1, "next token")])
def test_a_pure_positional_head_is_named_so(by: int, name: str) -> None:
    head = named(shifted(by))
    assert head.type == name
    assert all(number in head.rule for number in (f"{1 - abs(by) / N:.1%}", f"{POSITIONAL:.0%}"))
    assert head.entropy == 0
    assert head.confidence == 1
    assert head.distance == pytest.approx(abs(by) * (N - 1) / N)


@pytest.mark.parametrize("sink", ["</s>", "."])
@pytest.mark.parametrize("kind", ["encoder_self", "cross"])
def test_a_head_on_the_end_token_or_a_full_stop_is_a_sink(kind: str, sink: str) -> None:
    pattern = np.full((N, N), 0.4 / (N - 1))
    pattern[:, -1] = 0.6
    head = named(pattern, kind, (*(f"▁{i}" for i in range(N - 1)), sink))
    assert head.type == "sink"
    assert "60.0%" in head.rule
    assert (head.special if sink == "</s>" else head.punctuation) == pytest.approx(0.6)


@pytest.mark.parametrize("kind", ["encoder_self", "cross"])
def test_equal_weights_are_broad(kind: str) -> None:
    head = named(np.full((N, N), 1 / N), kind)
    assert (head.type, head.spread) == ("broad", pytest.approx(1))
    assert head.entropy == pytest.approx(np.log2(N))
    assert head.confidence == pytest.approx(1 / N)


def test_neighbours_on_both_sides_are_local() -> None:
    assert named((shifted(-1) + shifted(1)) / 2).type == "local"


def test_a_head_that_looks_three_tokens_back_is_mixed_and_says_why() -> None:
    head = named(shifted(-3))
    assert head.type == "mixed"
    assert head.rule


def test_an_alignment_in_order_is_monotone_and_one_in_reverse_is_not() -> None:
    in_order = np.eye(7)[np.arange(5) * 6 // 4]
    assert named(in_order, "cross").type == "monotone"
    assert named(in_order, "cross").order > MONOTONE
    assert named(in_order, "cross").distance < 0.5
    assert named(in_order[::-1], "cross").type == "mixed"


def test_cross_attention_has_no_previous_token() -> None:
    head = named(np.eye(4), "cross")
    assert (head.previous, head.same, head.next) == (None, None, None)


def test_a_head_without_a_choice_is_not_praised_for_it() -> None:
    assert named(np.ones((1, 1))).type == "no choice"


def test_distance_in_cross_attention_is_from_the_diagonal_corner_to_corner() -> None:
    apart = distances(True, 3, 5)
    assert [apart[0, 0], apart[1, 2], apart[2, 4]] == [0, 0, 0]
    assert distances(True, 1, 4)[0, 3] == 3
    assert distances(False, 4, 4)[3, 1] == 2


@pytest.mark.parametrize("kind", KINDS)
def test_shares_of_a_run_are_what_loops_add_up(trace, kind: str) -> None:
    found = trace.attention(kind, 1)
    for head, summary in enumerate(summarise(found)):
        pattern, rows = found.pattern[head], range(len(found.query_tokens))
        special = sum(
            pattern[i, j] for i in rows for j, token in enumerate(found.key_tokens) if token in ("<s>", "</s>")
        )
        assert summary.special == pytest.approx(special / len(rows), abs=1e-6)
        assert summary.confidence == pytest.approx(sum(max(pattern[i]) for i in rows) / len(rows))
        if kind != "cross":
            assert summary.previous == pytest.approx(sum(pattern[i, i - 1] for i in rows if i) / len(rows))


@pytest.mark.parametrize("kind", KINDS)
def test_the_vectors_behind_the_norms_add_up_to_the_attentions_output(trace, kind: str) -> None:
    found = trace.attention(kind, 1)
    vectors = np.einsum("hij,hjk,hkm->hijm", found.pattern, found.v, found.projections.w_o)
    assert np.linalg.norm(vectors, axis=-1) == pytest.approx(norm_weighted(found), abs=1e-5)
    assert vectors.sum(axis=2) == pytest.approx(found.z @ found.projections.w_o, abs=1e-5)
    assert vectors.sum(axis=(0, 2)) + found.projections.b_o == pytest.approx(found.out, abs=1e-5)


def test_rollout_multiplies_half_identities_and_its_rows_sum_to_one(trace) -> None:
    patterns = [trace.attention("encoder_self", layer).pattern for layer in (0, 1)]
    eye = np.eye(len(trace.src_tokens))
    first, second = (0.5 * pattern.astype(float).mean(axis=0) + 0.5 * eye for pattern in patterns)
    found = rollout(patterns)
    assert found[0] == pytest.approx(first)
    assert found[1] == pytest.approx(second @ first)
    assert found.sum(axis=-1) == pytest.approx(1)


@pytest.mark.parametrize("kind", KINDS)
def test_tables_without_any_wish_are_the_runs_own_weights(trace, kind: str) -> None:
    tables = head_tables(trace, kind, TableOptions())
    for layer in (0, 1):
        assert np.array_equal(tables.values[layer], trace.attention(kind, layer).pattern)
        assert np.array_equal(tables.mask[layer], trace.attention(kind, layer).mask)
    assert not tables.removed.any()


looks = st.builds(TableOptions, st.sampled_from(("weights", "norms")), st.booleans(), st.booleans(), st.booleans())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(looks, st.sampled_from(KINDS))
def test_every_look_keeps_the_books(trace, look: TableOptions, kind: str) -> None:
    tables = head_tables(trace, kind, look)
    plain = head_tables(trace, kind, replace(look, hide=False, renormalise=False))
    rows = [plain.queries.index(group) for group in tables.queries]
    sums, before = tables.values.sum(axis=-1), plain.values.sum(axis=-1)[..., rows]
    left = before if look.renormalise and look.hide else before * (1 - tables.removed)
    assert np.where(np.isnan(sums), left, sums) == pytest.approx(left, rel=1e-4, abs=1e-6)
    if look.values == "weights":
        assert before == pytest.approx(1, abs=1e-5)
    if look.hide:
        assert not any(trace.attention(kind, 0).key_special[g[0]] for g in tables.keys)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(looks, st.sampled_from(KINDS), st.integers(1, 9))
def test_an_overview_has_the_largest_of_neighbouring_cells(trace, look: TableOptions, kind: str, rows: int) -> None:
    whole = head_tables(trace, kind, look)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("model.analysis.heads.head_tables.MOST_ROWS", rows)
        found = overview(trace, kind, look)
    assert max(found.values.shape[-2:]) <= rows
    assert [i for group in found.queries for i in group] == [i for group in whole.queries for i in group]
    assert [i for group in found.keys for i in group] == [i for group in whole.keys for i in group]
    seen = np.where(whole.mask, np.nan_to_num(whole.values, nan=-1), -1)
    for axis in (-2, -1):
        seen = np.maximum.reduceat(seen, range(0, seen.shape[axis], found.pool), axis=axis)
    np.testing.assert_array_equal(np.where(found.mask, found.values, -1) if found.pool > 1 else seen, seen)
    np.testing.assert_array_equal(found.removed, whole.removed)


def test_words_of_cross_attention_are_those_that_its_rows_predict(trace) -> None:
    tables, found = head_tables(trace, "cross", TableOptions(words=True)), trace.attention("cross", 0)
    groups = (
        word_groups(found.predicts.labels, found.predicts.special),
        word_groups(found.key_tokens, found.key_special),
    )
    assert (tables.queries, tables.keys) == groups
    assert np.array_equal(tables.values[0], merge(found.pattern, *groups))


def test_hiding_keeps_every_row_of_cross_attention_and_drops_the_start_tokens_own(trace) -> None:
    assert len(head_tables(trace, "cross", TableOptions(hide=True)).queries) == len(trace.tgt_tokens)
    tables = head_tables(trace, "decoder_self", TableOptions(hide=True))
    assert tables.queries == tables.keys == tuple((i,) for i in range(1, len(trace.tgt_tokens)))
    pattern = trace.attention("decoder_self", 0).pattern
    assert tables.removed[0] == pytest.approx(pattern[:, 1:, 0])


@pytest.mark.parametrize("kind", ["decoder_self", "cross"])
def test_rollout_is_refused_where_it_means_nothing(trace, kind: str) -> None:
    with pytest.raises(ValueError, match=kind):
        head_tables(trace, kind, TableOptions("rollout"))
