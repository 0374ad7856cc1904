"""Forms: what is drawn is what the record holds, masked cells have no colour, and a click says which place it is."""

import numpy as np
import pytest

from viz.forms import Bars, Line, Lines, Map, Maps, Mark, Scale, Strips, stretches
from viz.special.side_by_side import Panel, Shared, SideMaps

NAMES = ["0 <b>a", "1 b", "2 c"]
VALUES = np.arange(9, dtype=np.float32).reshape(3, 3) / 9
MASK = np.tri(3, dtype=bool)
RNG = np.random.default_rng(0)


def maps(**more) -> Maps:
    scores = Scale.signed(VALUES, title="score")
    return Maps(NAMES, NAMES, {"w": Map(np.ones((3, 3)), MASK), "s": Map(VALUES, MASK, scores)}, **more)


def test_maps_are_the_records_numbers_and_a_masked_cell_has_no_colour_and_says_why() -> None:
    figure = maps().draw()
    _, hidden, values, _ = figure.data
    assert np.array_equal(values.z, np.where(MASK, VALUES, np.nan), equal_nan=True)
    assert np.array_equal(np.isnan(hidden.z), MASK)
    assert "masked" in hidden.hovertemplate
    assert {colour for _, colour in hidden.colorscale} == {"rgba(0,0,0,0)"}
    assert len(figure.layout.images) == 2


@pytest.mark.parametrize("count", [1, 15, 16, 80])
@pytest.mark.parametrize("length", [2, 60])
def test_a_line_of_maps_fits_on_a_screen_however_many_tokens_there_are(count: int, length: int) -> None:
    names, values = [f"{number} {'m' * length}" for number in range(count)], np.ones((count, count)) / count
    panel = Panel(names, names, values, values > 0)
    shared = Shared(*[[(number, number) for number in range(count)]] * 2, values - values, np.zeros(count))
    pictures = (
        Maps(names, names, {"one": Map(values), "other": Map(values, values > 0, Scale.signed(values, title="score"))}),
        SideMaps(left=panel, right=panel, shared=shared, titles=("left", "right")),
    )
    for figure in (picture.draw() for picture in pictures):
        assert figure.layout.height <= 520
        assert len(figure.layout.yaxis.ticktext) <= 22, "each label needs 14 pixels"


@pytest.mark.parametrize("count", [2, 9, 80])
def test_two_colour_bars_have_height_for_their_titles_and_do_not_touch(count: int) -> None:
    names, values = [f"token {number}" for number in range(count)], np.ones((count, count)) / count
    maps = {"one": Map(values), "other": Map(values, scale=Scale.signed(values, title="score"))}
    layout = Maps(names, names, maps).draw().layout
    room = layout.height - layout.margin.t - layout.margin.b
    ends = []
    for bar in (layout.coloraxis.colorbar, layout.coloraxis2.colorbar):
        assert bar.len * room >= 110, "three lines of a title take half of that"
        ends += [layout.margin.t + room * (1 - bar.y + side * bar.len / 2) for side in (-1, 1)]
    assert ends == sorted(ends)
    assert 0 <= ends[0] < ends[-1] <= layout.height


def test_nothing_is_hatched_where_nothing_is_masked() -> None:
    figure = Maps(NAMES, NAMES, {"": Map(VALUES)}).draw()
    assert len(figure.data) == 1
    assert not figure.layout.images


def test_maps_of_one_scale_share_one_range_and_others_have_their_own() -> None:
    signed = Scale.signed(VALUES, -2 * VALUES)
    figure = Maps(
        NAMES, NAMES, {"a": Map(VALUES, scale=signed), "b": Map(VALUES, scale=signed), "c": Map(VALUES)}
    ).draw()
    assert [heat.coloraxis for heat in figure.data] == ["coloraxis", "coloraxis", "coloraxis2"]
    limit = 2 * VALUES.max()
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (-limit, limit)
    assert (figure.layout.coloraxis2.cmin, figure.layout.coloraxis2.cmax) == (0, 1)


def test_names_never_become_markup_and_long_axes_get_few_ticks() -> None:
    names = [f"{i} <b>x</b>" for i in range(100)]
    figure = Maps(names, names, {"a": Map(np.tri(100), np.tri(100, dtype=bool)), "b": Map(np.tri(100))}).draw()
    for axis in (figure.layout.xaxis, figure.layout.yaxis, figure.layout.xaxis2):
        assert len(axis.tickvals) == len(axis.ticktext) <= 30
        assert all("<" not in text for text in axis.ticktext)
    assert all("<" not in name for heat in figure.data for name in (*heat.x, *heat.y))
    bars = Bars(names, {"a": np.ones(100)}, ("key", "weight")).draw()
    assert "<" not in bars.data[0].customdata[0][0]
    assert len(bars.layout.xaxis.tickvals) <= 30
    curve = Lines({"a": Line(np.arange(100), np.ones(100), names=names)}, ("step", "log p"), of="token").draw()
    assert all("<" not in name for name in curve.data[0].customdata)


def test_a_map_that_sets_something_has_a_point_on_each_cell_that_says_its_row_and_column() -> None:
    form = maps(sets={"row": object()})
    points = [trace for trace in form.draw().data if trace.type == "scatter"]
    assert len(points) == 2
    for trace in points:
        cells = [form.clicked({"customdata": place}) for place in trace.customdata]
        assert cells == [{"row": row, "column": column} for row in range(3) for column in range(3)]
        assert [trace.customdata[index][2] for index in (0, 1)][1] == "masked"
    assert f"<b>{VALUES[1, 0]:.7g}</b>" in points[1].customdata[3][2]
    assert "<b>a" not in points[0].x[0]
    assert form.draw().layout.xaxis2.range == (-0.5, 2.5)
    assert form.draw().layout.yaxis.range == (2.5, -0.5)
    assert not [trace for trace in maps().draw().data if trace.type == "scatter"]


def test_a_click_on_a_bar_or_a_point_says_its_place() -> None:
    bars = Bars(NAMES, {"a": np.ones(3)}, ("key", "weight"), sets={"place": object()})
    assert bars.clicked({"point_index": 2}) == {"place": 2}
    assert Lines({"a": Line([0, 1], [2, 3])}, ("x", "y")).clicked({"point_index": 1}) == {"place": 1}


@pytest.mark.parametrize("mode", ["group", "overlay"])
def test_bars_are_the_series_in_every_mode(mode: str) -> None:
    series = {"one": np.array([0.25, 0.75]), "two": np.array([0.5, np.nan])}
    form = Bars(np.array([0.0, 0.5]), series, ("score", "share"), mode=mode, details={"one": ["5 cells", "6 cells"]})
    figure = form.draw()
    assert [bar.name for bar in figure.data] == list(series)
    for bar, values in zip(figure.data, series.values(), strict=True):
        assert np.array_equal(bar.y, values, equal_nan=True)
    assert [text for (text,) in figure.data[0].customdata] == ["5 cells", "6 cells"]
    assert figure.data[1].customdata is None


def test_lines_are_the_points_and_a_band_has_both_ends() -> None:
    x = np.arange(4)
    low, middle, high = (RNG.random(4) + shift for shift in (0, 2, 4))
    form = Lines({"all": Line(x, middle, between=(low, high)), "one": Line(x, middle, symbol="circle")}, ("x", "y"))
    top, bottom, line = form.draw().data
    assert np.array_equal(top.y, high)
    assert np.array_equal(bottom.y, low)
    assert np.array_equal(line.y, middle)
    arrays = form.arrays()
    assert np.array_equal(arrays["all_low"], low)
    assert np.array_equal(arrays["one_y"], middle)


def test_marks_stand_where_they_say_also_on_a_logarithmic_axis() -> None:
    form = Lines(
        {"a": Line([1, 10], [0, 1])}, ("τ", "bits"), log="x", marks=[Mark(x=10, text="here"), Mark(y=0.5, text="half")]
    )
    figure = form.draw()
    assert [(line.x0, line.y0) for line in figure.layout.shapes] == [(10, 0), (0, 0.5)]
    assert [note.x for note in figure.layout.annotations] == [1, 0]  # an annotation is placed by its logarithm


def test_strips_share_one_range_that_the_bar_states_and_frame_the_dimension() -> None:
    vectors = {"x": np.array([0.5, -3.0]), "y": np.array([1.0, 2.0])}
    form = Strips(vectors, dimension=1)
    figure = form.draw()
    assert np.array_equal(figure.data[0].z, np.stack([*form.arrays().values()]))
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (-3, 3)
    assert figure.layout.coloraxis.colorbar.ticktext == ("−3", "0", "3")
    assert (figure.layout.shapes[0].x0, figure.layout.shapes[0].x1) == (0.5, 1.5)
    assert not Strips(vectors).draw().layout.shapes


def test_a_table_lists_rows_first_and_every_array_of_the_maps() -> None:
    table = maps().table()
    assert list(table["query"][:3]) == [NAMES[0]] * 3
    assert list(table["key"][:3]) == NAMES
    assert np.array_equal(table["s"].to_numpy().reshape(3, 3), VALUES)
    assert np.array_equal(table["mask"].to_numpy().reshape(3, 3), MASK)


@pytest.mark.parametrize(
    ("flags", "runs"), [([0, 1, 1, 0, 1], [(1, 2), (4, 4)]), ([0, 0], []), ([1, 1], [(0, 1)]), ([], [])]
)
def test_stretches_are_the_runs_of_true(flags: list[int], runs: list[tuple[int, int]]) -> None:
    assert stretches(np.array(flags, bool)) == runs


def test_names_that_look_like_numbers_are_categories_and_a_cell_for_each_lies_inside_the_frame() -> None:
    names = [f"{row}.{column}" for row in range(2) for column in range(3)]
    chart = Maps(names, names, {"": Map(np.eye(6, dtype=np.float32))}, sets={"row": None}).draw().content
    for axis, ends in (("xaxis", [-0.5, 5.5]), ("yaxis", [5.5, -0.5])):
        assert chart["layout"][axis]["type"] == "category"
        assert chart["layout"][axis]["range"] == ends
    assert list(chart["data"][0]["x"]) == list(chart["data"][0]["y"]) == names
