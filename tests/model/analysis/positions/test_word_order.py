"""The order experiment: without positions the encoder sees a set, with them a sequence."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.analysis.positions.word_order import (
    SIDES,
    OrderRun,
    move_words,
    reorder,
    reordered_text,
    run_both_orders,
    shuffle_words,
    source_words,
    translate_both_orders,
    without_positions,
)
from tests.model.strategies import few, runs

TOLERANCES = {torch.float64: 1e-10, torch.float32: 5e-5}


def largest_error(found: OrderRun, run) -> float:
    """Of all that is compared, in units of the largest number there."""
    arrays = (*found.memory, run.trace.logits)
    return max(found.memory_error, found.cross_error, found.logits_error) / max(np.abs(x).max() for x in arrays)


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("side", SIDES)
def test_without_positions_the_memory_moves_with_its_tokens_and_nothing_else_changes(
    dtype: torch.dtype, side: str
) -> None:
    @few
    @given(runs(changed=False, dtype=dtype), st.randoms())
    def holds(run, rng) -> None:
        permutation = rng.sample(range(len(run.trace.src_ids)), len(run.trace.src_ids))
        found = run_both_orders(run.translator, run.trace, permutation, SIDES[side], ("encoder_self", 0))
        assert largest_error(found, run) < TOLERANCES[dtype]
        own, other = found.weights
        assert other == pytest.approx(own[:, permutation][:, :, permutation], abs=TOLERANCES[dtype])

    holds()


@few
@given(runs(changed=False))
def test_with_positions_the_own_order_is_the_trace(run) -> None:
    found = run_both_orders(run.translator, run.trace, range(len(run.trace.src_ids)), (), ("cross", 0))
    assert found.memory[0] == pytest.approx(run.trace.memory, rel=5e-5, abs=5e-5)
    assert found.weights[0] == pytest.approx(run.trace.attention("cross", 0).pattern, abs=5e-5)
    assert largest_error(found, run) < TOLERANCES[torch.float32]


def test_with_positions_the_order_tells(translator) -> None:
    trace = translator.trace("A dog runs through the white snow.", "Ein Hund rennt.")
    permutation = reorder(trace.src_tokens, (1, 0, 2, 3, 4, 5, 6))
    found = run_both_orders(translator, trace, permutation, (), ("encoder_self", 0))
    assert min(found.memory_error, found.cross_error, found.logits_error) > 1e-2
    assert (found.moved > 1e-3).all()
    put_back = found.memory[1][np.argsort(permutation)]
    lengths = np.linalg.norm(put_back - found.memory[0], axis=1) / np.linalg.norm(found.memory[0], axis=1)
    assert np.array_equal(found.moved, lengths)
    assert found.memory_error == np.abs(put_back - found.memory[0]).max()


def test_positions_are_off_inside_the_block_only(translator, trace) -> None:
    with without_positions(translator.model, SIDES["encoder"]):
        inside = translator.rerun(trace, ())
    assert not inside.src_embedded.positional.any()
    assert inside.tgt_embedded.positional.any()
    assert np.array_equal(inside.src_embedded.sum, inside.src_embedded.embedding)
    assert np.array_equal(translator.rerun(trace, ()).logits, trace.logits)


def test_translations_are_those_of_the_reordered_tokens(translator) -> None:
    trace = translator.trace("dog bites man", "Hund")
    permutation = reorder(trace.src_tokens, (2, 1, 0))
    text = reordered_text(translator, trace, permutation)
    assert text == "man bites dog"
    assert translate_both_orders(translator, trace, permutation, ()) == tuple(
        translator.translate([trace.source, text])
    )
    own, other = translate_both_orders(translator, trace, permutation, SIDES["both"])
    assert own == other


def test_words_keep_their_pieces_and_marks_their_place() -> None:
    tokens = ("▁The", "▁dog", "▁bit", "es", "▁John", "'", "s", "▁cat", ".", '"', "</s>")
    assert source_words(tokens) == ((0,), (1,), (2, 3), (4, 5, 6), (7,))
    assert reorder(tokens, (0, 3, 2, 4, 1)) == (0, 4, 5, 6, 2, 3, 7, 1, 8, 9, 10)
    assert source_words(("▁A", "</s>")) == ((0,),)


@pytest.mark.parametrize("order", [(0, 1), (0, 1, 1), (1, 2, 3), ()])
def test_an_order_names_each_word_once(order: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="each of the numbers 0 to 2 once"):
        reorder(("▁a", "▁b", "▁c", "</s>"), order)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 20])
def test_a_shuffle_changes_the_order_where_one_can(count: int) -> None:
    for seed in range(5):
        order = shuffle_words(count, seed)
        assert sorted(order) == list(range(count))
        assert order == shuffle_words(count, seed)
        assert (order == tuple(range(count))) == (count < 2)


@few
@given(st.data())
def test_words_move_whole_and_tokens_of_no_word_stay(data) -> None:
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=6))
    gaps = data.draw(st.lists(st.integers(0, 2), min_size=len(sizes) + 1, max_size=len(sizes) + 1))
    words, n_tokens = [], gaps[0]
    for size, gap in zip(sizes, gaps[1:], strict=True):
        words.append(tuple(range(n_tokens, n_tokens + size)))
        n_tokens += size + gap
    order = data.draw(st.permutations(range(len(words))))
    moved = move_words(n_tokens, words, order)
    assert sorted(moved) == list(range(n_tokens))
    in_words = {position for word in words for position in word}
    assert [p for p in moved if p in in_words] == [p for i in order for p in words[i]]
    assert [p for p in moved if p not in in_words] == [p for p in range(n_tokens) if p not in in_words]
    with pytest.raises(ValueError, match="once"):
        move_words(n_tokens, words, [0] * (len(words) + 1))
