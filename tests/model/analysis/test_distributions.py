"""Entropy in bits, and the total variation between two distributions; runs/test_swapped_weights.py has the other."""

import numpy as np
import pytest

from model.analysis.distributions import entropy, total_variation


def test_entropy_is_in_bits() -> None:
    rows = np.array([[0.5, 0.5, 0, 0], [1, 0, 0, 0], [0.25] * 4, [0] * 4])
    assert entropy(rows) == pytest.approx([1, 0, 2, 0])
    assert not np.signbit(entropy(rows)).any()


def test_total_variation_is_the_probability_that_one_distribution_lost_to_the_other() -> None:
    before, after = np.array([[0.5, 0.5, 0], [1, 0, 0]]), np.array([[0.2, 0.5, 0.3], [0, 1, 0]])
    assert total_variation(before, after) == pytest.approx([0.3, 1])
    assert total_variation(after, before) == pytest.approx([0.3, 1])
