"""Label smoothing in numbers equals the loss that training takes, and a schedule is read back from its own rates."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.trace import log_probabilities
from model.training.loss import cross_entropies, label_smoothed_loss, smoothed_shares, target_entropy
from model.training.schedule import cooldown, measured_schedule, noam

epsilons = st.floats(0, 1)
sizes = st.integers(2, 300)


@given(sizes, epsilons)
def test_the_shares_are_a_distribution_whose_entropy_is_the_stated_one(vocabulary: int, epsilon: float) -> None:
    right, other = smoothed_shares(vocabulary, epsilon)
    shares = np.array([right, *[other] * (vocabulary - 1)])
    assert shares.sum() == pytest.approx(1)
    assert (shares >= 0).all()
    entropy = -sum(share * math.log(share) for share in shares if share)
    assert target_entropy(vocabulary, epsilon) == pytest.approx(entropy, abs=1e-12)


@pytest.mark.parametrize(("vocabulary", "epsilon"), [(1, 0.1), (8, -0.1), (8, 1.1), (8, math.nan)])
def test_what_is_no_distribution_is_refused(vocabulary: int, epsilon: float) -> None:
    with pytest.raises(ValueError, match="smoothing is 0 to 1"):
        smoothed_shares(vocabulary, epsilon)


@given(st.integers(0, 2**31), st.integers(1, 6), sizes, epsilons)
def test_the_cross_entropies_are_the_loss_of_training(seed: int, rows: int, vocabulary: int, epsilon: float) -> None:
    random = np.random.default_rng(seed)
    logits = random.normal(0, 8, (rows, vocabulary)).astype(np.float32)
    targets = random.integers(1, vocabulary, rows)
    loss = label_smoothed_loss(torch.from_numpy(logits)[None].double(), torch.from_numpy(targets)[None], epsilon)
    assert cross_entropies(logits, targets, epsilon).sum() == pytest.approx(loss.item(), rel=1e-10, abs=1e-10)


@given(st.integers(0, 2**31), sizes, st.floats(0.01, 0.99))
def test_no_logits_go_below_the_targets_own_entropy_and_the_target_reaches_it(
    seed: int, vocabulary: int, epsilon: float
) -> None:
    floor = target_entropy(vocabulary, epsilon)
    logits = np.random.default_rng(seed).normal(0, 5, (1, vocabulary))
    assert cross_entropies(logits, [0], epsilon)[0] >= floor - 1e-9
    right, other = smoothed_shares(vocabulary, epsilon)
    best = np.log([[right, *[other] * (vocabulary - 1)]])
    assert cross_entropies(best, [0], epsilon)[0] == pytest.approx(floor)


def test_extreme_logits_leave_the_input_alone_and_stay_finite() -> None:
    logits = np.array([[1e30, -1e30, 0.0]])
    before = logits.copy()
    assert np.isfinite(log_probabilities(logits)).all()
    assert np.array_equal(logits, before)


@given(st.integers(50, 5000), st.floats(0.1, 10), st.sampled_from([16, 128, 512]))
def test_warm_up_and_factor_are_read_back_from_six_digits(warmup: int, factor: float, d_model: int) -> None:
    steps = np.arange(1, 11) * max(warmup // 3, 1)
    rates = np.array([float(f"{noam(int(s), d_model, warmup, factor):.6g}") for s in steps])
    found = measured_schedule(steps, rates, d_model)
    assert found is not None
    assert found.warmup == pytest.approx(warmup, rel=1e-4)
    assert found.factor == pytest.approx(factor, rel=1e-4)
    # The warm-up that is drawn is a whole number of steps.
    assert found.error < 1e-4 + 1 / warmup
    assert found.lowered_from is None


def test_a_cooldown_is_told_apart_from_the_equation() -> None:
    steps = np.arange(100, 2001, 100)
    rates = np.array([noam(int(s), 64, 450) * cooldown(int(s), 2000, 600) for s in steps])
    found = measured_schedule(steps[:-1], rates[:-1], 64)
    assert found is not None
    assert (round(found.warmup), found.lowered_from) == (450, 1500)


def test_a_second_run_in_the_log_is_told_and_not_taken_for_the_first() -> None:
    steps = np.arange(100, 2001, 100)
    first = np.array([noam(int(s), 64, 450) * cooldown(int(s), 2000, 600) for s in steps])
    second = np.array([noam(int(s), 64, 300, 0.6) for s in steps])
    both = measured_schedule(np.append(steps, steps + 2000), np.append(first, second), 64)
    alone = measured_schedule(steps, first, 64)
    assert both is not None
    assert alone is not None
    assert (both.restarted_at, alone.restarted_at) == (2100, None)
    assert (both.warmup, both.factor, both.lowered_from) == (alone.warmup, alone.factor, alone.lowered_from)


@pytest.mark.parametrize("warmup", [1, 10**6])
def test_a_log_without_rise_or_without_fall_gives_no_schedule(warmup: int) -> None:
    steps = np.arange(100.0, 1100, 100)
    rates = np.array([noam(int(s), 64, warmup) for s in steps])
    assert measured_schedule(steps, rates, 64) is None
    assert measured_schedule(steps, np.full(10, np.nan), 64) is None
    assert measured_schedule(steps[:0], rates[:0], 64) is None
