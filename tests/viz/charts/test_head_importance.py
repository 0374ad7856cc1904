"""Maps, list and curve of heads that are switched off show the numbers they are given, each at its own head."""

import numpy as np
import pytest

from viz.charts.head_importance import effect_maps, effect_table, pruning_chart

NAMES = {"cross": "Cross", "encoder_self": "Encoder"}


@pytest.fixture
def changes() -> dict[str, np.ndarray]:
    numbers = np.random.default_rng(0)
    return {"cross": numbers.normal(size=(2, 3)), "encoder_self": numbers.normal(size=(4, 3))}


def test_each_cell_is_its_heads_and_one_range_around_0_holds_all(changes):
    figure = effect_maps(changes, NAMES, ("encoder_self", 3, 1))
    heats, points = (
        [t for t in figure.data if t.type == "heatmap"],
        [t for t in figure.data if t.type == "scatter"],
    )
    for (kind, values), heat, over in zip(changes.items(), heats, points, strict=True):
        assert np.array_equal(heat.z, values)
        for x, y, (k, layer, head), said in zip(over.x, over.y, over.customdata, over.hovertext, strict=True):
            assert (k, layer, head) == (kind, y, x)
            assert float(said) == pytest.approx(values[layer, head])
    axis = figure.layout.coloraxis
    assert axis.cmax == -axis.cmin == max(abs(v).max() for v in changes.values())
    assert f"to {axis.cmax:.2g} nats" in figure.layout.xaxis2.title.text
    (frame,) = figure.layout.shapes
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (0.5, 1.5, 2.5, 3.5)


def test_the_list_is_sorted_and_its_shares_sum_to_1(changes):
    table = effect_table({kind: values[None] for kind, values in changes.items()}, NAMES)
    assert table["change, nats"].is_monotonic_increasing
    assert table["share of all changes"].sum() == pytest.approx(1)
    worst = table.iloc[0]
    kind = {name: kind for kind, name in NAMES.items()}[worst["attention"]]
    assert worst["change, nats"] == changes[kind][worst["layer"], worst["head"]]
    assert "lowest" not in table


def test_several_sentences_give_mean_and_spread():
    several = np.array([[[-1.0, 2.0]], [[-3.0, 4.0]]])
    table = effect_table({"cross": several}, NAMES)
    assert list(table["change, nats"]) == [-2, 3]
    assert list(table["standard deviation"]) == pytest.approx([2**0.5, 2**0.5])
    assert list(table["lowest"]) == [-3, 2]
    assert list(table["falls in"]) == [2, 0]


def test_heads_that_change_nothing_have_no_share():
    assert not effect_table({"cross": np.zeros((1, 1, 2))}, NAMES)["share of all changes"].any()


def test_the_curve_tells_by_shape_too_where_the_translation_is_another():
    figure = pruning_chart(np.array([-1.0, -2.0, -9.0]), np.array([1.0, 1.0, 0.0]), 1, ["a", "b"])
    line = figure.data[0]
    assert list(line.y) == [-1, -2, -9]
    assert line.marker.symbol[0] == line.marker.symbol[1] != line.marker.symbol[2]
    assert list(line.customdata[2]) == ["b", "changed"]
