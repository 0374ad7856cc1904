"""Lines of descent join each with its parent, no line or name lies on another, and areas are sizes."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from viz.descent import DOT, LETTER, PHONE, ROW, Descent, Kin
from viz.paper.page import Paper, draw
from viz.tokens import text_width

LANES = {"up": "#0072B2", "down": "#E69F00"}


@st.composite
def families(draws: st.DrawFn) -> Descent:
    """Trees of at most 24, each younger than its parent; some without a size."""
    family: list[Kin] = []
    for number in range(draws(st.integers(2, 24))):
        parent = draws(st.sampled_from([None, *family])) if family else None
        year = (parent.year if parent else 2017) + draws(st.floats(0, 1))
        size = draws(st.none() | st.floats(1e6, 1e12)) if family else 1e9
        lane = draws(st.sampled_from([*LANES]))
        family.append(Kin(f"<b>{number}", year, lane, size, parent.name if parent else ""))
    return Descent(family, LANES, "parameters", draws(st.sampled_from(family)).name)


def circles_of(picture: Descent) -> dict:
    (circles,) = (trace for trace in picture.draw().content["data"] if "textposition" in trace)
    return circles


def rows_of(picture: Descent) -> dict[str, tuple[float, float]]:
    places = zip(*(circles_of(picture)[letter] for letter in "xy"), strict=True)
    return dict(zip([one.name for one in picture.family], places, strict=True))


@given(families())
def test_each_has_a_row_of_its_own_in_its_lane_below_its_parent_there(picture: Descent) -> None:
    rows = {name: y for name, (_, y) in rows_of(picture).items()}
    assert min(np.diff(sorted(rows.values()))) >= ROW - 1e-6
    lanes = [one.lane for one in sorted(picture.family, key=lambda one: rows[one.name])]
    assert lanes == sorted(lanes, key=[*LANES].index)
    lane = {one.name: one.lane for one in picture.family}
    for one in picture.family:
        assert lane.get(one.parent) != one.lane or rows[one.parent] < rows[one.name]


@given(families())
def test_a_line_leads_from_each_parent_to_each_that_descends_from_it_and_that_of_the_chosen_one_is_marked(
    picture: Descent,
) -> None:
    rows = rows_of(picture)
    *plain, marked = [
        {*zip(places[::4], places[2::4], strict=True)}
        for trace in picture.draw().content["data"]
        if trace["mode"] == "lines"
        for places in [[*zip(trace["x"], trace["y"], strict=True)]]
    ]
    joined = {(rows[one.parent], rows[one.name]) for one in picture.family if one.parent}
    assert {(start, end) for ends in plain for start, end in ends} == joined
    line = picture.line
    assert marked == {(rows[before], rows[after]) for before, after in pairwise(line)}
    assert line[-1] == picture.chosen


@given(families())
def test_areas_are_sizes_down_to_the_dot_and_no_circle_leaves_its_row(picture: Descent) -> None:
    marker = circles_of(picture)["marker"]
    across = dict(zip([one.name for one in picture.family], marker["size"], strict=True))
    for one in picture.family:
        if one.size and one.size > picture.least:
            assert (across[one.name] / DOT) ** 2 == pytest.approx(one.size / picture.least)
    ys = sorted((y, across[name] / 2) for name, (_, y) in rows_of(picture).items())
    assert all(upper + radius <= lower - other for (upper, radius), (lower, other) in pairwise(ys))
    assert [symbol == "circle" for symbol in marker["symbol"]] == [one.size is not None for one in picture.family]


@given(families())
def test_every_name_ends_inside_the_picture_on_a_phone(picture: Descent) -> None:
    start, end = picture.draw().content["layout"]["xaxis"]["range"]
    for one in picture.family:
        assert (one.year - start) / (end - start) * PHONE + text_width([one.name], LETTER) < PHONE


def test_names_are_text_what_has_no_size_cannot_be_chosen_and_a_paper_shows_it() -> None:
    family = [Kin("<i>a", 2017, "up", 2.0), Kin("b", 2018, "down", None, "<i>a", {"took": "it"})]
    picture = Descent(family, LANES, "parameters", "<i>a", chooses=[{"member": "<i>a"}])
    assert [picture.clicked({"point_index": place}) for place in range(2)] == [{"member": "<i>a"}, {}]
    circles = circles_of(picture)
    assert "&lt;i&gt;a" in circles["text"][0]
    assert "took: it" in circles["customdata"][1]
    np.testing.assert_array_equal(picture.arrays()["parameters"], [2.0, np.nan])
    assert draw(picture.draw(), Paper(), "Lines of descent")
