"""A table of products: areas are the terms, and the last row and column their sums."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from viz.products import LOWERS, RAISES, Products

TERMS = arrays(float, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.floats(-50, 50, width=32))


def table(values: np.ndarray) -> Products:
    rows, columns = (
        [f"{side} <b>{part}" for part in range(count)] for side, count in zip("qk", values.shape, strict=True)
    )
    return Products(rows, columns, values, "adds to q · k", chooses=[{"place": name} for name in (*rows, *columns)])


@given(TERMS)
def test_the_area_of_a_square_is_its_term_and_the_last_row_and_column_are_sums(values: np.ndarray) -> None:
    (squares,) = table(values).draw().data
    sums = np.pad(values, ((0, 1), (0, 1)))
    sums[-1], sums[:, -1] = sums[:-1].sum(axis=0), sums[:, :-1].sum(axis=1)
    sums[-1, -1] = values.sum()
    areas = np.array(squares.marker.size, dtype=float).reshape(sums.shape) ** 2
    largest = np.abs(sums).max() or 1.0
    np.testing.assert_allclose(areas / (areas.max() or 1.0), np.abs(sums) / largest, atol=1e-6)
    raises = np.array(squares.marker.color).reshape(sums.shape) == RAISES
    np.testing.assert_array_equal(raises, sums >= 0)
    assert {*squares.marker.color} <= {RAISES, LOWERS}


@given(TERMS)
def test_no_square_touches_its_neighbour_or_the_number_below_it(values: np.ndarray) -> None:
    picture = table(values).draw()
    side = max(picture.data[0].marker.size)
    assert side * (values.shape[1] + 1) <= 331
    down, shown = picture.layout.yaxis.tickvals, picture.layout.yaxis.range
    height = picture.layout.height - picture.layout.margin.t - picture.layout.margin.b
    assert side + 12 <= height / abs(shown[1] - shown[0]) * min(np.diff(down))


def test_a_click_chooses_by_the_row_and_on_a_sum_of_a_column_by_the_column() -> None:
    picture = table(np.ones((2, 3)))
    chosen = [picture.clicked({"point_index": place})["place"] for place in range(12) if place != 11]
    rows = [*[picture.rows[0]] * 4, *[picture.rows[1]] * 4]
    assert chosen == [*rows, *picture.columns]
    assert picture.clicked({"point_index": 11}) == {}


def test_names_are_text_and_the_numbers_are_exported_as_they_are() -> None:
    picture = table(np.array([[1.5, -0.25]]))
    figure = picture.draw()
    assert figure.layout.xaxis.ticktext[0] == "k &lt;b&gt;0"
    assert figure.data[0].text[:3] == ("+1.50", "−0.25", "+1.25")
    assert next(iter(picture.arrays().values())) is picture.values
    assert picture.table().iloc[:, -1].tolist() == pytest.approx([1.5, -0.25])
