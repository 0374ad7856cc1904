"""Lengths, amounts and shares of the model card."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from viz.special.model_card import amount, lengths_to_plot, percentages


@given(st.floats(1, 1e5), st.integers(1, 5000))
def test_lengths_are_whole_grow_and_pass_all_marks(even: float, longest: int) -> None:
    lengths = lengths_to_plot(1, longest, even)
    assert lengths[0] == 1
    assert (np.diff(lengths) > 0).all()
    assert lengths[-1] > max(longest, even)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (7, "7"), (999, "999"), (2_349_056, "2.35 M"), (63_082_496, "63.1 M"), (999_999, "1 M"), (4e9, "4 G")],
)
def test_an_amount_has_three_digits_and_its_unit(value: float, text: str) -> None:
    assert amount(value) == text


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=8))
def test_shares_are_of_the_whole(values: list[int]) -> None:
    assert sum(float(share.removesuffix("%")) for share in percentages(values)) == pytest.approx(100, abs=0.41)
