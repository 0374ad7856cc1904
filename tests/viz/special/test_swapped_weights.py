"""The scatter of heads shows the numbers that it is given, on axes that state their range."""

import math

import numpy as np
import pytest

from viz.special.swapped_weights import swap_scatter


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
