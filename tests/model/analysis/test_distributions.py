"""Entropy in bits, and distances between two distributions."""

import math

import numpy as np
import pytest

from model.analysis.distributions import entropy, jensen_shannon, total_variation


def test_entropy_is_in_bits() -> None:
    rows = np.array([[0.5, 0.5, 0, 0], [1, 0, 0, 0], [0.25] * 4, [0] * 4])
    assert entropy(rows) == pytest.approx([1, 0, 2, 0])
    assert not np.signbit(entropy(rows)).any()


def test_total_variation_is_the_probability_that_one_distribution_lost_to_the_other() -> None:
    before, after = np.array([[0.5, 0.5, 0], [1, 0, 0]]), np.array([[0.2, 0.5, 0.3], [0, 1, 0]])
    assert total_variation(before, after) == pytest.approx([0.3, 1])
    assert total_variation(after, before) == pytest.approx([0.3, 1])


def test_the_jensen_shannon_divergence_ends_at_ln_2() -> None:
    p, q = np.array([[1.0, 0.0], [0.3, 0.7], [0.5, 0.5]]), np.array([[0.0, 1.0], [0.3, 0.7], [1.0, 0.0]])
    middle = 0.5 * (0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25)) + 0.5 * math.log(1 / 0.75)
    assert jensen_shannon(p, q) == pytest.approx([math.log(2), 0, middle])
    np.testing.assert_array_equal(jensen_shannon(p, q), jensen_shannon(q, p))
