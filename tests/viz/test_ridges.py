"""Ridges are as high as their numbers, each on its own base, and the one to stress is told by more than its colour."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from viz.ridges import PEAK, Ridges

ROWS = arrays(float, st.tuples(st.integers(1, 9), st.integers(1, 30)), elements=st.floats(0, 1))


def ridges(values: np.ndarray, bold: int = 0) -> Ridges:
    rows = {f"τ = {row}": one for row, one in enumerate(values)}
    return Ridges([f"<b>{place}" for place in range(values.shape[1])], rows, ("key", "weight"), f"τ = {bold}")


@given(ROWS)
def test_a_number_reaches_from_the_base_of_its_row_up_to_its_height(values: np.ndarray) -> None:
    drawn = ridges(values).draw().content
    bases, steps = drawn["data"][::2], drawn["data"][1::2]
    for row, (base, step) in enumerate(zip(bases, steps, strict=True)):
        assert {*base["y"]} == {row} == {drawn["layout"]["yaxis"]["tickvals"][row]}
        assert (step["x"][0], step["x"][-1]) == (-0.5, values.shape[1] - 0.5)
        np.testing.assert_array_equal(base["x"], step["x"])
        np.testing.assert_allclose((row - step["y"]) / PEAK, np.repeat(values[row], 3), atol=1e-12)
    low, high = drawn["layout"]["yaxis"]["range"]
    assert high <= -PEAK < len(values) - 1 < low


def test_the_stressed_row_is_bold_in_its_name_and_has_the_thickest_line() -> None:
    drawn = ridges(np.ones((3, 2)), bold=1).draw().content
    assert [text.startswith("<b>") for text in drawn["layout"]["yaxis"]["ticktext"]] == [False, True, False]
    widths = [trace["line"]["width"] for trace in drawn["data"][1::2]]
    assert widths[1] > max(widths[0], widths[2])


def test_what_is_masked_has_no_ridge_and_says_so_and_arrays_keep_it_apart() -> None:
    picture = ridges(np.array([[0.25, np.nan]]))
    *_, steps = picture.draw().content["data"]
    assert [*steps["y"][3:]] == [0, 0, 0]
    assert steps["customdata"][-1] == ["&lt;b&gt;1", "masked"]
    assert steps["customdata"][0] == ["&lt;b&gt;0", "0.25"]
    assert picture.table().iloc[:, -1].tolist() == pytest.approx([0.25, np.nan], nan_ok=True)
