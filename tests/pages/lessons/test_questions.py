"""What may be guessed is read off the run's numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from model.analysis.heads.softmax import softmax_at
from pages import PAGES
from pages.lessons import lessons
from pages.lessons.guesses import halfway, questions
from pages.lessons.question import (
    MOST_OPTIONS,
    Places,
    highest,
    largest,
    places_of,
    rows_with_choice,
    view_named,
)
from pages.views import Result
from viz.forms import Bars, Form, Map, Maps

rows = arrays.arrays(np.float64, st.integers(2, 9), elements=st.floats(-4, 4))


@given(rows)
def test_the_highest_are_all_those_that_nothing_exceeds(values: np.ndarray) -> None:
    places, value = highest(values)
    assert places
    assert set(places) == {i for i, one in enumerate(values) if one >= values.max()}
    assert value == values[places[0]]


@given(rows, st.sampled_from((0.5, 2.0)))
def test_halfway_lies_between_all_others_equal_and_all_others_on_one_key(scaled: np.ndarray, tau: float) -> None:
    mask = np.ones(len(scaled), dtype=bool)
    plain, weight, line = halfway(scaled, mask, tau)
    assert plain == softmax_at(scaled, mask, 1).max()
    assert weight == softmax_at(scaled, mask, tau).max()
    # The logarithm of a weight is a score: the same largest weight, and the two extremes of the rest.
    rest = np.log(np.array([1 - plain, (1 - plain) / (len(scaled) - 1)]))
    alone = softmax_at(np.array([np.log(plain), rest[0]]), np.ones(2, dtype=bool), tau)[0]
    spread = softmax_at(np.array([np.log(plain), *[rest[1]] * (len(scaled) - 1)]), mask, tau)[0]
    assert line == pytest.approx((alone + spread) / 2, abs=5.1e-4)
    assert min(alone, spread) - 1e-9 <= weight <= max(alone, spread) + 1e-9


def test_rows_with_a_choice_have_more_than_one_open_key() -> None:
    assert rows_with_choice(np.tril(np.ones((3, 3), dtype=bool))) == (1, 2)


@given(rows, st.booleans(), st.integers(0, 8))
def test_the_right_options_are_the_places_of_the_largest_or_smallest_number(
    values: np.ndarray, smallest: bool, closed: int
) -> None:
    is_open = np.arange(len(values)) != closed % len(values)
    places = Places([f"place {i}" for i in range(len(values))], values, is_open)
    options, right, best, value = largest(places, smallest)
    assert value == (min if smallest else max)(values[is_open])
    assert [options[i] for i in right] == [f"place {i}" for i in np.flatnonzero(is_open & (values == value))]
    assert all(options[i] in best for i in right)
    assert f"place {closed % len(values)}" not in options


@given(arrays.arrays(np.float64, st.integers(13, 40), elements=st.floats(-4, 4), unique=True), st.integers(0, 39))
def test_of_many_places_those_around_the_centre_are_offered_and_another_stands_for_the_rest(
    values: np.ndarray, centre: int
) -> None:
    options, right, best, _ = largest(Places([str(i) for i in range(len(values))], values, centre=centre))
    assert len(options) == MOST_OPTIONS
    assert options[-1] == "another"
    assert [options[i] for i in right] == [best if best in options else "another"]


MASK = np.tril(np.ones((4, 4), dtype=bool))
WEIGHTS = np.where(MASK, np.arange(16.0).reshape(4, 4), 99.0)


@pytest.mark.parametrize(
    ("picture", "part", "best"),
    [
        (Bars(["a", "b"], {"x": np.array([1, 2]), "y": np.array([4, 3])}, ("", "")), "", "1 b"),
        (Bars(["a", "b"], {"x": np.array([1, 2]), "y": np.array([4, 3])}, ("", "")), "y", "0 a"),
        (Maps(list("pqrs"), list("abcd"), {"": Map(WEIGHTS, MASK)}), "", "c"),
        (Maps(list("pqrs"), list("abcd"), {"": Map(WEIGHTS, MASK), "2": Map(-WEIGHTS, MASK)}), "2", "a"),
    ],
)
def test_any_bars_and_maps_can_be_asked_for_their_largest_number(picture: Form, part: str, best: str) -> None:
    """Of a map in a row with a choice, here the third, and never on a masked cell."""
    places = places_of(Result({"name": picture}), "name", part)
    assert largest(places)[2] == best


def test_every_question_is_of_a_page_and_of_a_view_that_there_are() -> None:
    names = {page.name for section in PAGES.values() for page in section}
    assert set(questions()) <= names
    everything = [one for offered in questions().values() for one in offered]
    everything += [station.question for lesson in lessons() for station in lesson.stations]
    for question in everything:
        if question.facts is None and "." in question.view:
            assert set(question.chosen) <= set(view_named(question.view).controls)
        assert question.answer
        assert len([way for way in (question.options, question.among, question.names, question.hints) if way]) == 1


def test_every_station_shows_a_view_or_what_is_none_yet_and_gives_it_values_that_it_takes() -> None:
    for station in (station for lesson in lessons() for station in lesson.stations):
        if "." in station.live:
            view = view_named(station.live)
            assert set(station.given) <= set(view.controls), station.slug
        else:
            assert not station.given
            assert not station.only
