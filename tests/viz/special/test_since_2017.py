"""Figures of Since 2017: what is drawn is what was given."""

import numpy as np
import pytest

from viz.special import since_2017 as charts

RNG = np.random.default_rng(0)
X = RNG.normal(size=12)


def test_a_pair_is_drawn_from_the_origin_before_and_after_with_its_arc_less_whole_turns() -> None:
    q, k = np.array([[3.0, 0], [0, 3]]), np.array([[0, 1.0], [1, 0]])
    figure = charts.rotation_plane(q, k, (2 * np.pi + np.pi / 2, 0), ("3 <b>", "1 b"), (2, 6))
    arc, before, after, still, *_ = figure.data
    assert (list(before.x), list(before.y)) == ([0, 3], [0, 0])
    assert (list(after.x), list(after.y)) == ([0, 0], [0, 3])
    assert (arc.x[0], arc.y[-1]) == pytest.approx((0.55 * 3, 0.55 * 3))
    assert np.ptp(still.x) == np.ptp(still.y) == 0, "not rotated, no arc"
    assert figure.layout.xaxis.range[1] > 3
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == ("dimension 2", "dimension 6")
    assert "<b>" not in before.hovertemplate.partition("<br>")[0]


@pytest.mark.parametrize("post", [True, False])
def test_the_stream_shows_the_token_before_the_others_and_what_a_norm_took(post: bool) -> None:
    lengths, added, share = (RNG.random((3, 4)) + 0.1 for _ in range(3))
    figure = charts.stream_chart(lengths, added, share, ["input", "0 a", "0 b", "1 a"], 1, post)
    named = {trace.name: trace for trace in figure.data}
    assert np.array_equal(named["‖x‖, this token"].y, lengths[1])
    assert np.array_equal(named["share of the sub-layer, this token"].y, share[1])
    assert ("‖x + Sublayer(x)‖, before the norm" in named) == post
    others = np.array(figure.data[0].y, float).reshape(2, 5)
    assert np.array_equal(others[:, :4], lengths[[0, 2]])
    assert np.isnan(others[:, 4]).all()


def test_every_neuron_is_on_the_curve_and_the_largest_are_ringed() -> None:
    top = np.argsort(-np.abs(X))[:7]
    figure = charts.activation_chart(np.stack([X, X**2]), X, X**2, top, ("square", "the largest"))
    line, points, rings = figure.data
    assert np.array_equal(line.y, X**2)
    assert np.array_equal(points.x, X)
    assert np.array_equal(rings.x, X[top])
    assert list(rings.text) == [str(n) for n in top[:5]] + ["", ""]


def test_the_colour_of_a_neuron_is_its_product_in_one_range_that_the_bar_states() -> None:
    up = RNG.normal(size=12)
    figure = charts.gate_chart(X, up, np.array([3, 5]))
    assert np.array_equal(figure.data[0].marker.color, X * up)
    end = np.abs(X * up)[[3, 5]].min()
    axis = figure.layout.coloraxis
    assert (axis.cmin, axis.cmax) == (-end, end)
    assert axis.colorbar.ticktext == (f"≤ −{end:.3g}", "0", f"≥ {end:.3g}")


def test_a_token_without_an_active_neuron_has_no_rings() -> None:
    none = np.array([], dtype=int)
    points, rings = charts.gate_chart(np.zeros(12), X, none).data
    assert not np.any(points.marker.color)
    assert not len(rings.x)
    assert len(charts.activation_chart(np.stack([X, X]), X, X, none, ("line", "the largest")).data[1].x) == 12


def test_each_query_head_has_a_line_to_its_own_keys() -> None:
    lines, queries, shared = charts.sharing_chart((0, 0, 1, 1), 2).data
    x = np.array(lines.x, float).reshape(4, 3)[:, :2]
    assert x.tolist() == [[0, 0.5], [1, 0.5], [2, 2.5], [3, 2.5]]
    assert list(queries.customdata) == [0, 0, 1, 1]
    assert list(shared.text) == ["0", "1"]
