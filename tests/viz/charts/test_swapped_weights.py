"""The scatter of heads and the bars of keys show the numbers they are given, on axes that state their range."""

import math

import numpy as np
import pytest

from viz.charts.swapped_weights import swap_scatter, zeroing_bars, zeroing_table


@pytest.mark.parametrize(("measure", "limit"), [("tv", 1), ("jsd", math.log(2))])
def test_each_point_is_its_head_and_the_chosen_one_is_marked(measure, limit):
    picture, output = np.random.default_rng(1).random((2, 3, 4)) * limit
    figure = swap_scatter(picture, output, measure, (2, 1), "<b>x</b>")
    (points,) = figure.data
    for x, y, (layer, head) in zip(points.x, points.y, points.customdata, strict=True):
        assert (x, y) == (picture[layer, head], output[layer, head])
    assert [text for text in points.text if text] == ["2.1"]
    assert points.marker.symbol[2 * 4 + 1] == "diamond"
    assert list(points.marker.symbol).count("diamond") == 1
    for axis in (figure.layout.xaxis, figure.layout.yaxis):
        assert axis.range[0] < 0
        assert limit < axis.range[1] < 1.1 * limit
        assert "0 to" in axis.title.text
    assert "<b>" not in figure.layout.title.text


def test_bars_stand_beside_each_other_key_by_key():
    weights, shares = np.array([0.2, 0.8]), np.array([0.5, 0.5])
    figure = zeroing_bars(["▁<i>", "</s>"], weights, shares)
    assert [list(bar.y) for bar in figure.data] == [[0.2, 0.8], [0.5, 0.5]]
    assert "<i>" not in figure.data[0].customdata
    table = zeroing_table(["▁a", "</s>"], weights, shares, np.array([-1.0, 0.0]))
    assert table["change in log p, nats"].tolist() == [-1, 0]
    assert table["attention weight"].tolist() == [0.2, 0.8]
