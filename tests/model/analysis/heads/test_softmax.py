"""The softmax at any temperature: its limits, its entropy, and what the products of q and k vary by."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from model.analysis.distributions import entropy
from model.analysis.heads.softmax import (
    entropy_by_temperature,
    mean_entropy,
    one_hot_weights,
    product_statistics,
    softmax_at,
    uniform_weights,
)
from model.interventions import AttentionTemperature

TAUS = (1e-3, 0.05, 0.5, 1.0, 2.0, 20.0, 1e3)


@st.composite
def rows(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Scores of one row and its mask, at least one key allowed."""
    size = draw(st.integers(1, 12))
    # Multiples of 1/64: two scores are equal, or far enough apart for the limit to tell them.
    scores = draw(arrays(np.float32, size, elements=st.integers(-3200, 3200).map(lambda n: n / 64)))
    mask = draw(arrays(bool, size))
    mask[draw(st.integers(0, size - 1))] = True
    return scores, mask


@given(rows(), st.sampled_from(list(pairwise(TAUS))))
def test_entropy_never_falls_as_the_temperature_rises(row: tuple, taus: tuple[float, float]) -> None:
    low, high = entropy_by_temperature(*row, taus)
    assert 0 <= low <= high + 1e-12
    assert high <= math.log2(row[1].sum()) + 1e-12


@given(rows())
def test_the_limits_are_the_argmax_and_the_uniform_distribution(row: tuple) -> None:
    scores, mask = row
    assert softmax_at(scores, mask, 1e-30) == pytest.approx(one_hot_weights(scores, mask))
    assert softmax_at(scores, mask, 1e30) == pytest.approx(uniform_weights(mask))
    assert entropy(uniform_weights(mask)) == pytest.approx(math.log2(mask.sum()), abs=1e-12)


def test_equal_highest_scores_share_the_weight_and_masked_ones_get_none() -> None:
    scores, mask = np.array([2.0, 5.0, 5.0, 9.0]), np.array([True, True, True, False])
    assert one_hot_weights(scores, mask).tolist() == [0, 0.5, 0.5, 0]
    assert uniform_weights(mask) == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0])
    assert entropy(one_hot_weights(scores, mask)) == pytest.approx(1)


@pytest.mark.parametrize("tau", TAUS)
def test_a_row_that_may_look_at_nothing_has_no_weights_and_no_entropy(tau: float) -> None:
    scores, mask = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[False, False], [True, False]])
    for weights in (softmax_at(scores, mask, tau), one_hot_weights(scores, mask), uniform_weights(mask)):
        assert weights.tolist() == [[0, 0], [1, 0]]
        assert entropy(weights).tolist() == [0, 0]


@pytest.mark.parametrize("tau", [0, -1, math.nan])
def test_a_temperature_that_is_not_above_zero_is_refused(tau: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        softmax_at(np.zeros(2), np.ones(2, dtype=bool), tau)


@pytest.mark.parametrize("tau", TAUS)
@pytest.mark.parametrize(("kind", "layer"), [("encoder_self", 0), ("decoder_self", 0), ("cross", 1)])
def test_what_is_drawn_again_is_what_the_run_has(translator, trace, tau: float, kind: str, layer: int) -> None:
    hot = translator.rerun(trace, (AttentionTemperature(tau, kind=kind, layer=layer),))
    before, after = (run.attention(kind, layer) for run in (trace, hot))
    drawn = softmax_at(before.scaled, before.mask, tau)
    # The run divides and adds in single precision: a score of size x is off by about x times 1e-7.
    rounding = np.finfo(np.float32).eps * np.abs(before.scaled).max() / tau
    assert after.pattern == pytest.approx(drawn, abs=min(1e-6 + float(rounding), 1e-3))


def test_statistics_are_of_all_components_and_of_the_products_that_are_not_masked(trace) -> None:
    attention = trace.attention("decoder_self", 1)
    found = product_statistics(attention, 2)
    q, k = attention.q[2].astype(float), attention.k[2].astype(float)
    assert (found.q_mean, found.q_variance) == pytest.approx((q.mean(), q.var()))
    assert (found.k_mean, found.k_variance) == pytest.approx((k.mean(), k.var()))
    variance = (q**2).mean() * (k**2).mean() - (q.mean() * k.mean()) ** 2
    assert found.if_independent == pytest.approx(attention.d_k * variance), "of a sum of d_k independent products"
    seen = attention.scores[2][attention.mask[2]].astype(float)
    assert found.variance == pytest.approx(seen.var())
    assert found.scaled_variance == pytest.approx(found.variance / attention.d_k, rel=1e-5)


def test_the_mean_entropy_counts_every_row_of_every_head_once(trace) -> None:
    rows = [entropy(row) for a in trace.attentions.values() for head in a.pattern for row in head]
    assert mean_entropy(trace) == pytest.approx(np.mean(rows))
