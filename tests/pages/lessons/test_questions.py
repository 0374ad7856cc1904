"""What may be guessed is read off the run's numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from model.analysis.softmax import softmax_at
from pages.lessons.guesses import halfway
from pages.lessons.question import highest, rows_with_choice

rows = arrays.arrays(np.float64, st.integers(2, 9), elements=st.floats(-4, 4))


@given(rows)
def test_the_highest_are_all_those_that_nothing_exceeds(values: np.ndarray) -> None:
    places, value = highest(values)
    assert places
    assert set(places) == {i for i, one in enumerate(values) if one >= values.max()}
    assert value == values[places[0]]


@given(rows, st.sampled_from((0.5, 2.0)))
def test_halfway_lies_between_all_others_equal_and_all_others_on_one_key(scaled: np.ndarray, tau: float) -> None:
    mask = np.ones(len(scaled), dtype=bool)
    plain, weight, line = halfway(scaled, mask, tau)
    assert plain == softmax_at(scaled, mask, 1).max()
    assert weight == softmax_at(scaled, mask, tau).max()
    # The logarithm of a weight is a score: the same largest weight, and the two extremes of the rest.
    rest = np.log(np.array([1 - plain, (1 - plain) / (len(scaled) - 1)]))
    alone = softmax_at(np.array([np.log(plain), rest[0]]), np.ones(2, dtype=bool), tau)[0]
    spread = softmax_at(np.array([np.log(plain), *[rest[1]] * (len(scaled) - 1)]), mask, tau)[0]
    assert line == pytest.approx((alone + spread) / 2, abs=5.1e-4)
    assert min(alone, spread) - 1e-9 <= weight <= max(alone, spread) + 1e-9


def test_rows_with_a_choice_have_more_than_one_open_key() -> None:
    assert rows_with_choice(np.tril(np.ones((3, 3), dtype=bool))) == (1, 2)
