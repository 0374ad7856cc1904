"""The training loss is the paper's formula, and label smoothing in numbers is that loss."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.network.config import PAD
from model.trace import log_probabilities
from model.training.loss import cross_entropies, label_smoothed_loss, smoothed_shares, target_entropy
from tests.model.strategies import few

epsilons = st.floats(0, 1)
sizes = st.integers(2, 300)


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
    with pytest.raises(ValueError, match="smoothing must lie in"):
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
