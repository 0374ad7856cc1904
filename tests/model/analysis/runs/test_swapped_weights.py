"""How far the picture and the output move, held against the formulas written out."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from model.analysis.distributions import jensen_shannon
from model.analysis.runs.swapped_weights import ROWS, rank_correlation, swap_every_head, swap_weights, zero_values
from model.interventions import HeadGate, PermutedAttention, UniformAttention, ValueZeroing
from model.trace import Trace
from tests.model.strategies import KINDS, few

SOURCE, TARGET = "Two dogs play", "Zwei Hunde rennen"


def divergence(p: np.ndarray, q: np.ndarray) -> float:
    """KL(p || q), one number at a time."""
    return sum(a * math.log(a / b) for a, b in zip(p.tolist(), q.tolist(), strict=True) if a > 0)


def by_hand(p: np.ndarray, q: np.ndarray) -> tuple[float, float]:
    """(total variation, Jensen-Shannon divergence) of two distributions."""
    middle = (p + q) / 2
    return sum(abs(p - q)) / 2, (divergence(p, middle) + divergence(q, middle)) / 2


@few
@given(arrays(np.float64, (2, 5), elements=st.floats(0, 1)).filter(lambda pair: pair.sum(-1).all()))
def test_the_divergence_is_symmetric_and_lies_between_0_and_ln_2(pair):
    p, q = pair / pair.sum(-1, keepdims=True)
    assert jensen_shannon(p, q) == pytest.approx(by_hand(p, q)[1], abs=1e-12)
    assert jensen_shannon(p, q) == jensen_shannon(q, p)
    assert jensen_shannon(p, p) == 0
    assert 0 <= jensen_shannon(p, q) <= math.log(2) + 1e-12


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("head", [None, 2])
def test_swapped_weights_move_picture_and_output_by_the_formulas(double, kind, head):
    plain = double.trace(SOURCE, TARGET)
    found = list(swap_weights(double, plain, kind, 0, head, seeds=(3, 4)))
    changes = [UniformAttention(kind, 0, head), *(PermutedAttention(seed, None, kind, 0, head) for seed in (3, 4))]
    assert [moved.intervention for moved in found] == changes
    for moved in found:
        other = double.trace(SOURCE, TARGET, interventions=(moved.intervention,))
        for row, (p, q) in enumerate(zip(plain.probabilities, other.probabilities, strict=True)):
            assert (moved.output_tv[row], moved.output_jsd[row]) == pytest.approx(by_hand(p, q), abs=1e-12)
        heads = range(4) if head is None else [head]
        for i, h in enumerate(heads):
            rows = zip(plain.attention(kind, 0).pattern[h], other.attention(kind, 0).pattern[h], strict=True)
            for row, (p, q) in enumerate(rows):
                pair = moved.pattern_tv[i, row], moved.pattern_jsd[i, row]
                assert pair == pytest.approx(by_hand(p, q), abs=1e-12)
        assert len(moved.pattern_tv) == len(heads)
        assert moved.means["output_tv"] == pytest.approx(moved.output_tv.mean())
        assert moved.means["pattern_jsd"] > 0


def test_what_the_trace_itself_has_changed_stays_changed(double):
    silent = HeadGate(0.0, "cross", 0, 1)
    plain = double.trace(SOURCE, TARGET, interventions=(silent,))
    uniform = next(swap_weights(double, plain, "cross", 0, 1))
    assert uniform.output_tv.max() < 1e-12, "a head that is switched off may attend where it likes"
    assert uniform.pattern_tv.any()


def layer_output(trace: Trace, kind: str, layer: int) -> np.ndarray:
    after = {(each.stack, each.layer, each.name): each.after for each in trace.sublayers}
    return after["encoder" if kind == "encoder_self" else "decoder", layer, "feed_forward"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("head", [None, 1])
def test_zeroed_values_side_by_side_are_those_zeroed_one_by_one(double, kind, head):
    plain = double.trace(SOURCE, TARGET)
    *_, found = zero_values(double, plain, kind, 0, head)
    following = range(len(plain.next_ids)), list(plain.next_ids)
    x = layer_output(plain, kind, 0)
    for key in range(len(plain.attention(kind, 0).key_tokens)):
        other = double.trace(SOURCE, TARGET, interventions=(ValueZeroing((key,), kind, 0, head),))
        y = layer_output(other, kind, 0)
        cosine = (x * y).sum(-1) / np.linalg.norm(x, axis=-1) / np.linalg.norm(y, axis=-1)
        np.testing.assert_allclose(found.distance[:, key], 1 - cosine, rtol=0, atol=1e-10)
        change = np.log(other.probabilities[following]).sum() - np.log(plain.probabilities[following]).sum()
        assert found.change[key] == pytest.approx(change, abs=1e-10)
    if kind == "decoder_self":
        assert np.triu(found.distance, 1).max() < 1e-24, "a later word's value reaches no row before it"
    np.testing.assert_allclose(found.share.sum(-1), 1, rtol=1e-12)


def test_a_long_sentence_is_zeroed_in_parts(double):
    plain = double.trace("A dog runs through the white snow. " * 5, "Ja")
    steps = list(zero_values(double, plain, "cross", 1))
    keys = len(plain.src_ids)
    assert keys > ROWS
    assert len(steps) == -(-keys // ROWS)
    assert np.isnan(steps[0].change).sum() == keys - ROWS
    assert np.isfinite(steps[-1].distance).all()


def test_an_address_that_the_model_lacks_is_refused_in_a_sentence(double):
    plain = double.trace(SOURCE, TARGET)
    with pytest.raises(ValueError, match="heads are 0 to 3"):
        next(zero_values(double, plain, "cross", 0, 4))
    with pytest.raises(ValueError, match="no attention 'cross' in layer 5"):
        next(zero_values(double, plain, "cross", 5))
    with pytest.raises(ValueError, match="the model has no attention"):
        next(swap_weights(double, plain, "cross", 0, 4))


def test_every_head_is_swapped_as_it_is_alone(double):
    trace = double.trace("a dog", "Ein Hund")
    *_, found = swap_every_head(double, trace, "cross", seed=3)
    assert found.done == 1
    for layer, head in ((0, 1), (1, 3)):
        alone = swap_weights(double, trace, "cross", layer, head, (3,))
        for distances, run in zip((found.uniform, found.permuted), alone, strict=True):
            for name, value in run.means.items():
                assert distances[name][layer, head] == pytest.approx(value)
    with pytest.raises(ValueError, match="no attention"):
        next(swap_every_head(double, trace, "self"))


def test_ranks_agree_turn_round_and_share_their_ties():
    x = np.array([0.1, 5.0, 0.2, 9.0])
    assert rank_correlation(x, np.exp(x)) == pytest.approx(1)
    assert rank_correlation(x, -x) == pytest.approx(-1)
    assert rank_correlation(np.array([1, 1, 2, 3]), np.array([1, 2, 3, 4])) == pytest.approx(0.9486832980505138)
    assert math.isnan(rank_correlation(x, np.ones(4)))
