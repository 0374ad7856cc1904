"""Efficient attention: axes that have labels whatever the numbers, and marks where they belong."""

import numpy as np
import pytest

from viz.charts.efficient_attention import METHODS, cost_chart, error_chart, growth_chart

FEATURES = np.array([4, 8, 16])


@pytest.mark.parametrize(
    ("values", "expected"),
    [((0.7, 0.75), (0.5, 1)), ((0.5, 0.9), (0.5, 1)), ((0.03, 1), (0.02, 2)), ((1.09, 1.1), (1, 2))],
)
def test_errors_lie_between_two_labels_of_the_axis(values: tuple[float, float], expected: tuple[float, float]) -> None:
    band = np.linspace(*values, 9).reshape(3, 3)
    figure = error_chart(FEATURES, band, values[0], 8, "error", None)
    assert np.power(10, figure.layout.yaxis.range) == pytest.approx(expected)
    low, high, median, elu = figure.data
    assert (list(low.y), list(high.y), list(median.y)) == tuple(map(list, (band[0], band[2], band[1])))
    assert list(elu.y) == [values[0]] * 2
    assert [shape.x0 for shape in figure.layout.shapes] == [8]


def test_an_error_to_compare_with_is_on_the_axis() -> None:
    figure = error_chart(FEATURES, np.full((3, 3), 0.8), 0.9, 4, "error", 0.1)
    assert np.power(10, figure.layout.yaxis.range) == pytest.approx([0.1, 1])
    assert figure.layout.shapes[1].y0 == 0.1


def test_every_method_has_a_look_of_its_own_and_marks_stand_on_their_n() -> None:
    n = np.array([10, 1000, 1_000_000])
    costs = {f"method {i}": n * float(i + 1) for i in range(len(METHODS))}
    figure = cost_chart(n, costs, "bytes", {"this run: 12": 12, "n = 50,000": 50_000}, "bytes")
    looks = {(line.line.color, line.line.dash) for line in figure.data}
    assert len(looks) == len(METHODS)
    assert [list(line.y) for line in figure.data] == [list(values) for values in costs.values()]
    assert [shape.x0 for shape in figure.layout.shapes] == [12, 50_000]
    assert [note.x for note in figure.layout.annotations] == pytest.approx(np.log10([12, 50_000]))
    assert [note.xanchor for note in figure.layout.annotations] == ["left", "right"]


def test_costs_that_do_not_grow_still_have_two_powers_of_ten() -> None:
    n = np.array([10, 100])
    figure = cost_chart(n, {"a": np.full(2, 3e6), "b": np.full(2, 8e6)}, "bytes", {"a": 10, "b": 100}, "bytes")
    low, high = figure.layout.yaxis.range
    assert low <= 6
    assert high >= 7
    assert figure.layout.yaxis.dtick == 1


def test_a_fit_is_drawn_over_the_lengths_that_it_is_of() -> None:
    samples = {"a": np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])}
    figure = growth_chart((2, 4, 8), samples, {"a": (0.5, 2.0)}, 2, {"a": ("#0072B2", "circle")})
    points, line = figure.data
    assert (list(points.x), list(points.y)) == ([2, 4, 8], [2000, 5000, 8000])
    assert (list(line.x), list(line.y)) == ([4, 8], [8000, 32_000])
