"""A waterfall's bars hang together, from 0 to the sum, and keep their names whole."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from viz.paper.page import Paper, draw
from viz.waterfall import LOWERS, RAISES, Waterfall

EVIL = "cross L3H5 ← <b>it"
NUMBERS = st.lists(st.floats(-100, 100, allow_nan=False), min_size=1, max_size=14)


def fall(values: list[float]) -> Waterfall:
    return Waterfall([*(f"{EVIL} {i}" for i in range(len(values))), "the lead"], np.array(values), "adds to the lead")


@given(NUMBERS)
def test_each_bar_begins_where_the_last_one_ended_and_the_last_one_is_the_sum(values: list[float]) -> None:
    (bars,) = fall(values).draw().data
    starts, sizes = np.array(bars.base, dtype=float), np.array(bars.x, dtype=float)
    ends = starts + sizes
    assert starts[0] == 0
    np.testing.assert_allclose(starts[1:-1], ends[:-2], atol=1e-9)
    assert (starts[-1], sizes[-1]) == (0, pytest.approx(sum(values), abs=1e-9))
    assert ends[-2] == pytest.approx(ends[-1], abs=1e-9)


@given(NUMBERS)
def test_colour_and_sign_say_alike_what_raises_and_what_lowers(values: list[float]) -> None:
    (bars,) = fall(values).draw().data
    for value, colour, text in zip(values, bars.marker.color, bars.text, strict=False):
        assert colour == (RAISES if value >= 0 else LOWERS)
        assert text.startswith("−") == (f"{value:+.2f}".startswith("-"))


def test_every_bar_and_number_lies_inside_the_axis_and_every_name_is_whole() -> None:
    picture = fall([2.0, -5.0, 1.0]).draw()
    low, high = picture.layout.xaxis.range
    assert low < -3
    assert high > 2
    assert len(picture.layout.yaxis.ticktext) == 4
    assert all("…" not in name for name in picture.layout.yaxis.ticktext)
    assert "<b>it" not in picture.layout.yaxis.ticktext[0], "a token is no HTML"


def test_paper_has_every_bar_where_the_screen_has_it() -> None:
    form = fall([2.0, -5.0, 1.0])
    page = draw(form.draw(), Paper(), "Who chose")
    drawn = sorted((round(bar.get_x(), 6), round(bar.get_width(), 6)) for bar in page.axes[0].patches)
    assert drawn == [(-3, 1), (0, -2), (0, 2), (2, -5)]


def test_it_is_exported_under_its_own_names() -> None:
    form = fall([2.0, -5.0])
    assert list(form.arrays()) == ["adds_to_the_lead"]
    assert form.table()["part"].tolist() == [f"{EVIL} 0", f"{EVIL} 1"]
