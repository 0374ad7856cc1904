"""The training loss against the paper's formula."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.network.config import PAD
from model.training.loss import label_smoothed_loss
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
