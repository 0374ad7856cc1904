"""The loss and the learning rate, held against the paper's formulas."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.network.config import PAD
from model.training.loss import label_smoothed_loss
from model.training.schedule import cooldown, noam
from tests.model.strategies import few


@few
@given(st.floats(0, 0.9), st.integers(5, 30), st.integers(0, 2**31))
def test_the_loss_is_cross_entropy_with_a_smoothed_target(smoothing, vocabulary, seed):
    """-sum_v q(v) log p(v) with q = (1 - eps) one-hot + eps / V, summed over the tokens that are no padding."""
    rng = np.random.default_rng(seed)
    logits, targets = rng.normal(size=(2, 4, vocabulary)), rng.integers(0, vocabulary, size=(2, 4))
    targets[0, -1] = PAD
    expected = 0.0
    for row, target in zip(logits.reshape(-1, vocabulary), targets.reshape(-1), strict=True):
        if target != PAD:
            q = np.full(vocabulary, smoothing / vocabulary)
            q[target] += 1 - smoothing
            expected -= (q * (row - np.log(np.exp(row).sum()))).sum()
    found = label_smoothed_loss(torch.tensor(logits), torch.tensor(targets), smoothing).item()
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_padding_gets_no_gradient():
    logits = torch.randn(1, 3, 6, requires_grad=True)
    label_smoothed_loss(logits, torch.tensor([[4, 5, PAD]]), 0.1).backward()
    assert logits.grad[0, :2].any()
    assert not logits.grad[0, 2].any()


@few
@given(st.integers(1, 100_000), st.integers(1, 1024), st.integers(1, 10_000), st.floats(0.1, 5))
def test_the_learning_rate_is_equation_3(step, d_model, warmup, factor):
    expected = factor / np.sqrt(d_model) * min(1 / np.sqrt(step), step / warmup**1.5)
    assert noam(step, d_model, warmup, factor) == pytest.approx(expected, rel=1e-12)


@few
@given(st.integers(2, 5000))
def test_the_learning_rate_rises_in_a_line_until_warmup_and_falls_after(warmup):
    rates = [noam(step, 512, warmup) for step in (1, warmup - 1, warmup, warmup + 1)]
    assert max(rates) == rates[2]
    assert rates[3] < rates[2]
    assert rates[1] == pytest.approx((warmup - 1) * rates[0])


def test_the_papers_base_model_peaks_at_seven_ten_thousandths():
    assert noam(4000, 512, 4000) == pytest.approx(6.99e-4, rel=1e-3)


@few
@given(st.integers(1, 500), st.integers(1, 500))
def test_the_cooldown_falls_in_a_line_from_one_to_zero_at_the_last_step(steps, length):
    factors = [cooldown(step, steps, length) for step in range(1, steps + 1)]
    assert factors[-1] == 0
    assert all(factor == 1 for factor in factors[: max(steps - length, 0)])
    assert np.allclose(np.diff(factors[max(steps - length, 1) - 1 :]), -1 / length)
    assert cooldown(steps, steps, 0) == 1


@pytest.mark.parametrize(("step", "warmup"), [(0, 4000), (1, 0), (-1, 5)])
def test_steps_count_from_one(step, warmup):
    with pytest.raises(ValueError, match="count from 1"):
        noam(step, 512, warmup)
