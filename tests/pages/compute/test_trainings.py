"""Trainings of visitors: few at once, the others in line; kept a while after the last page has asked, found by id."""

import weakref
from collections.abc import Callable
from operator import itemgetter
from threading import Event, current_thread

import pytest

from pages.compute.trainings import Trainings, call_later

PATIENCE = 30
"""seconds until a test that hangs fails"""


class Training:
    closed = False

    def close(self) -> None:
        self.closed = True


class Clock:
    """Time that passes when it is set; what was to be called later is called when its time has come."""

    def __init__(self) -> None:
        self.now, self.calls = 0.0, []

    def __call__(self) -> float:
        return self.now

    def call_later(self, seconds: float, function: Callable[[], None]) -> None:
        self.calls.append((self.now + seconds, function))

    def pass_until(self, end: float) -> None:
        while self.calls and min(self.calls, key=itemgetter(0))[0] <= end:
            self.calls.remove(first := min(self.calls, key=itemgetter(0)))
            self.now, function = first
            function()
        self.now = end


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def trainings(clock: Clock) -> Trainings:
    return Trainings(most=2, kept_seconds=60, shared_seconds=100, clock=clock, call_later=clock.call_later)


def start(trainings: Trainings) -> tuple[str, Training]:
    """Stand in line, and begin if the turn has come at once."""
    made = Training()
    name = trainings.enter(lambda: made)
    trainings.begin(name)
    return name, made


def test_one_is_found_again_for_a_minute_after_it_was_last_asked_for(trainings: Trainings, clock: Clock) -> None:
    name, made = start(trainings)
    for clock.now in (59.0, 110.0, 170.0):
        assert trainings.find(name) is made
    assert not made.closed
    clock.now = 230.1
    assert trainings.find(name) is trainings.ahead(name) is None
    assert made.closed
    assert len(trainings) == 0


def test_one_that_is_left_is_freed_although_nobody_comes_any_more(trainings: Trainings, clock: Clock) -> None:
    name, made = start(trainings)
    for end in (50.0, 100.0):  # an open page says that it is there
        clock.pass_until(end)
        assert trainings.find(name) is made
    freed = weakref.ref(made)
    del made
    clock.pass_until(159.0)
    assert freed() is not None
    clock.pass_until(162.0)
    assert freed() is None
    assert clock.calls == [], "with nothing to free, nothing is looked for"
    start(trainings)
    assert len(clock.calls) == 1


def test_each_of_several_is_freed_in_its_own_time(trainings: Trainings, clock: Clock) -> None:
    _, first = start(trainings)
    clock.pass_until(40.0)
    _, second = start(trainings)
    assert len(clock.calls) == 1
    clock.pass_until(62.0)
    assert (first.closed, second.closed) == (True, False)
    clock.pass_until(102.0)
    assert second.closed


def test_one_whose_page_waits_for_the_model_is_kept_however_long_and_from_then_on(
    trainings: Trainings, clock: Clock
) -> None:
    made = Training()
    name = trainings.enter(lambda: made)
    with trainings.shown(name), trainings.shown("0" * 16):
        clock.pass_until(200.0)
        trainings.begin(name)
        clock.pass_until(400.0)
        assert trainings.find(name) is made
        with pytest.raises(ValueError, match=r"^left$"), trainings.shown(name):
            raise ValueError("left")
        clock.pass_until(600.0)
        assert not made.closed
    clock.pass_until(659.0)
    assert not made.closed
    clock.pass_until(662.0)
    assert made.closed


def test_the_timer_calls_and_does_not_keep_the_process() -> None:
    called, daemon = Event(), []

    def call() -> None:
        daemon.append(current_thread().daemon)
        called.set()

    call_later(0.0, call)
    assert called.wait(PATIENCE)
    assert daemon == [True]


def test_those_beyond_the_places_wait_in_the_order_of_their_arrival(trainings: Trainings) -> None:
    (first, _), (second, _), (third, later), (fourth, _) = (start(trainings) for _ in range(4))
    assert [trainings.ahead(name) for name in (first, second, third, fourth)] == [0, 0, 1, 2]
    trainings.begin(third)
    assert trainings.find(third) is None
    trainings.end(second)
    assert [trainings.ahead(name) for name in (first, third, fourth)] == [0, 0, 1]
    trainings.begin(fourth)
    trainings.begin(third)
    assert trainings.find(third) is later
    assert trainings.find(fourth) is None


def test_who_leaves_leaves_the_line(trainings: Trainings, clock: Clock) -> None:
    (first, _), (second, _), (third, _), (fourth, _) = (start(trainings) for _ in range(4))
    clock.now = 50.0
    stay = first, second, fourth
    assert [trainings.ahead(name) for name in stay] == [0, 0, 2]
    clock.now = 61.0
    assert [trainings.ahead(name) for name in stay] == [0, 0, 1]
    assert trainings.ahead(third) is None


def test_a_place_is_given_back_after_a_while_only_if_others_wait(trainings: Trainings, clock: Clock) -> None:
    (first, one), (second, _) = (start(trainings) for _ in range(2))
    for clock.now in (50.0, 99.0, 150.0):
        assert trainings.find(first) is one
        assert trainings.find(second)
    third, _ = start(trainings)
    assert trainings.find(first) is None
    assert one.closed
    assert trainings.find(second), "one place is enough for one who waits"
    assert trainings.ahead(third) == 0


def test_it_is_made_once_and_one_that_is_being_made_is_not_dropped(trainings: Trainings, clock: Clock) -> None:
    made = []

    def make() -> Training:
        clock.now += 1000
        trainings.begin(name)
        assert len(trainings) == 1
        assert trainings.find(name) is None
        made.append(Training())
        return made[-1]

    name = trainings.enter(make)
    trainings.begin(name)
    trainings.begin(name)
    assert [trainings.find(name)] == made


def test_one_that_could_not_be_made_leaves_its_place(trainings: Trainings) -> None:
    def fail() -> Training:
        raise ValueError

    with pytest.raises(ValueError, match=r"^$"):
        trainings.begin(trainings.enter(fail))
    assert len(trainings) == 0


def test_one_that_was_ended_while_it_was_made_takes_no_steps(trainings: Trainings) -> None:
    made = Training()

    def make() -> Training:
        trainings.end(name)
        return made

    name = trainings.enter(make)
    trainings.begin(name)
    assert made.closed
    assert trainings.find(name) is None


def test_an_ended_one_is_gone_and_an_unknown_id_finds_nothing(trainings: Trainings) -> None:
    name, made = start(trainings)
    trainings.end(name)
    trainings.end("0" * 16)
    trainings.begin("0" * 16)
    assert made.closed
    assert trainings.find(name) is None
    assert trainings.find("") is trainings.ahead("") is None
