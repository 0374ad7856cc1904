"""Times and scores as drawn are the numbers that they were given."""

import numpy as np
import pytest

from model.trace import Trace
from viz.charts.scoring_functions import cost_table, score_maps
from viz.charts.timing import time_chart, time_table

SAMPLES = {"one": np.array([[1.0, 2.0, 9.0], [4.0, 4.0, 4.0]]), "two": np.array([[5.0, 6.0, 7.0], [8.0, 8.5, 9.0]])}
LOOKS = {"one": ("#000000", "circle"), "two": ("#ffffff", "square")}


def test_lines_are_medians_in_milliseconds_with_the_middle_half_as_bars() -> None:
    figure = time_chart((8, 16), SAMPLES, LOOKS, 11)
    for line, (name, times) in zip(figure.data, SAMPLES.items(), strict=True):
        low, middle, high = np.percentile(times, (25, 50, 75), axis=1) * 1e3
        assert line.name == name
        assert line.marker.symbol == LOOKS[name][1]
        assert list(line.x) == [8, 16]
        assert line.y == pytest.approx(middle)
        assert line.error_y.array == pytest.approx(high - middle)
        assert line.error_y.arrayminus == pytest.approx(middle - low)
    assert figure.layout.shapes[0].x0 == 11


def test_a_table_of_times_has_a_line_a_length() -> None:
    table = time_table((8, 16), {"ms": np.array([1.0, 2.0]), "steps": [1, 1]})
    assert list(table.columns) == ["n", "ms", "steps"]
    assert table["n"].tolist() == [8, 16]
    assert table["ms"].tolist() == [1.0, 2.0]


def test_scores_stand_side_by_side_in_one_range(trace: Trace) -> None:
    attention = trace.attention("cross", 1)
    scores, scaled = attention.scores[2], attention.scaled[2]
    rows, keys = [f"{i} <b>" for i in range(scores.shape[0])], [f"{i} k" for i in range(scores.shape[1])]
    figure = score_maps(rows, keys, {"dot": scores, "scaled": scaled})
    for heat, values in zip(figure.data, (scores, scaled), strict=True):
        assert np.array_equal(heat.z, values)
        assert heat.coloraxis == "coloraxis"
        assert (len(heat.y), len(heat.x)) == values.shape
        assert all("<" not in name for name in heat.y)
    limit = np.abs(scores).max()
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (-limit, limit)
    assert f"{limit:.3g}" in figure.layout.coloraxis.colorbar.title.text


def test_costs_stand_beside_their_formulas() -> None:
    table = cost_table({"a": (1, 2, 3), "b": (4, 5, 6)}, {"b": "B", "a": "A"})
    assert table.to_numpy().tolist() == [["a", "A", 1, 2, 3], ["b", "B", 4, 5, 6]]
