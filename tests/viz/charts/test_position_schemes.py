"""Pictures of RoPE, ALiBi and the order experiment show the numbers they were given, in one colour range."""

import html

import numpy as np
import pytest

from model.network.masks import alibi_slopes
from viz.charts.position_schemes import bias_chart, bias_map, comparison_maps, memory_change_bars, offset_chart

RNG = np.random.default_rng(0)
NAMES = (["0 a", "1 <b>x</b>", "2 c"], ["0 d", "1 e"])
MASK = np.array([[True, False], [True, True], [True, True]])


@pytest.mark.parametrize("scores", [0, 2])
def test_maps_are_the_arrays_with_masked_cells_blank(scores: int) -> None:
    drawn = {f"score {i}": RNG.normal(size=(3, 2)).astype(np.float32) for i in range(scores)}
    weights = {f"weight {i}": RNG.random((3, 2)).astype(np.float32) for i in range(4 - scores)}
    figure = comparison_maps(NAMES, MASK, drawn, weights, 7.5)
    maps = [heat for heat in figure.data if "masked" not in heat.hovertemplate]
    for heat, (title, values) in zip(maps, {**drawn, **weights}.items(), strict=True):
        assert np.array_equal(heat.z, np.where(MASK, values, np.nan), equal_nan=True)
        assert heat.coloraxis == ("coloraxis" if title in drawn else "coloraxis2")
        assert list(heat.y) == [html.escape(name) for name in NAMES[0]]
    weight = figure.layout.coloraxis2
    assert (weight.cmin, weight.cmax) == (0, 1)
    if scores:
        assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (-7.5, 7.5)


def test_a_hundred_tokens_have_few_tick_labels() -> None:
    names = [f"{i} x" for i in range(100)]
    values = np.zeros((100, 100), np.float32)
    figure = comparison_maps((names, names), np.ones((100, 100), bool), {}, {"a": values, "b": values})
    assert len(figure.layout.xaxis.tickvals) <= 30
    assert len(figure.layout.yaxis.tickvals) <= 30


def test_the_curve_marks_where_the_two_stand() -> None:
    offsets, scores = np.arange(-3, 4), RNG.normal(size=7)
    curve, here, plain = offset_chart(offsets, scores, 0.5, -2).data
    assert np.array_equal(curve.y, scores)
    assert np.array_equal(curve.x, offsets)
    assert (list(here.x), list(here.y)) == ([-2], [scores[1]])
    assert set(plain.y) == {0.5}


@pytest.mark.parametrize("heads", [1, 4, 8, 16])
def test_every_head_has_its_line_and_the_chosen_one_is_broad(heads: int) -> None:
    slopes = alibi_slopes(heads).numpy()
    lines = bias_chart(slopes, heads - 1, 5).data
    assert len({(line.line.color, line.line.dash) for line in lines}) == heads
    for line, slope in zip(lines, slopes, strict=True):
        assert list(line.y) == [-slope * distance for distance in range(5)]
    assert [line.line.width for line in lines].index(5) == heads - 1


def test_the_bias_is_drawn_in_the_range_of_the_scores() -> None:
    bias = np.array([[0, np.nan], [-0.5, 0]])
    figure = bias_map(bias, 9.0)
    assert np.array_equal(figure.data[0].z, bias, equal_nan=True)
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (-9, 9)


def test_bars_are_the_changes_of_each_token() -> None:
    ways = {"with": np.array([0.3, 0.2]), "without": np.array([1e-7, 0.0])}
    figure = memory_change_bars(("<b>x</b>", "</s>"), ways)
    for bar, (way, values) in zip(figure.data, ways.items(), strict=True):
        assert bar.name == way
        assert np.array_equal(bar.y, values)
        assert all("<" not in name for name in bar.customdata)
