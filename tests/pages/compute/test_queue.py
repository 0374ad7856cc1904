"""Many sessions at once: who computes, who waits, and what becomes of the work of somebody who leaves."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Lock
from types import SimpleNamespace

import numpy as np
import pytest

from model.cancel import cancellable
from model.generation.search import greedy

st = pytest.importorskip("streamlit")
from pages.compute import cache, queue  # noqa: E402
from pages.compute.queue import Gate, TooBusy  # noqa: E402

PATIENCE = 30
"""seconds until a test that hangs fails"""


class Left(BaseException):
    """As Streamlit's own: no `except Exception` may catch it."""


class Session:
    """Somebody in a thread of their own who asks for a turn, and works until told to stop."""

    def __init__(self, gate: Gate, pool: ThreadPoolExecutor, wanted: object = None, done: Callable = lambda: False):
        self.waits, self.works, self.finish, self.gone = Event(), Event(), Event(), Event()
        self.before: list[int] = []
        self.future: Future = pool.submit(self._visit, gate, wanted, done)
        assert self._waits_or_works()

    def _visit(self, gate: Gate, wanted: object, done: Callable) -> str:
        with gate.turn(self._tell, wanted, done):
            self.works.set()
            assert self.finish.wait(PATIENCE)
        return "worked"

    def _tell(self, before: int) -> None:
        self.before.append(before)
        self.waits.set()
        if self.gone.is_set():
            raise Left

    def _waits_or_works(self) -> bool:
        ended = self.future.done
        return any(self.waits.is_set() or self.works.wait(0.01) or ended() for _ in range(PATIENCE * 100))

    def end(self) -> None:
        self.finish.set()
        assert self.future.result(PATIENCE) == "worked"


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(16) as threads:
        yield threads


def test_no_more_than_the_places_work_and_the_others_follow_in_the_order_in_which_they_came(pool):
    gate = Gate(2)
    sessions = [Session(gate, pool) for _ in range(5)]
    assert [session.works.is_set() for session in sessions] == [True, True, False, False, False]
    for leaving, following in ((1, 2), (0, 3), (2, 4)):
        sessions[leaving].end()
        assert sessions[following].works.wait(PATIENCE)
        assert not any(session.works.is_set() for session in sessions[following + 1 :])
    for session in sessions[3:]:
        session.end()
    assert [session.before[0] for session in sessions[2:]] == [2, 3, 4]
    for session in sessions[2:]:
        assert session.before == sorted(session.before, reverse=True), "the count goes down"


def test_who_leaves_while_waiting_leaves_the_queue_at_once(pool):
    gate = Gate(1)
    first, second, third = (Session(gate, pool) for _ in range(3))
    second.gone.set()
    with pytest.raises(Left):
        second.future.result(PATIENCE)
    first.end()
    assert third.works.wait(PATIENCE)
    third.end()
    assert not second.works.is_set()
    assert (gate._waiting, gate._working) == ([], [])


def test_work_that_fails_leaves_its_place(pool):
    gate = Gate(1)
    with pytest.raises(RuntimeError), gate.turn(lambda _: None):
        raise RuntimeError
    Session(gate, pool).end()


def test_two_who_want_the_same_do_not_work_on_it_at_once_and_let_others_pass(pool):
    gate, wish = Gate(2), object()
    first, second, other = (Session(gate, pool, wanted) for wanted in (wish, wish, None))
    assert other.works.wait(PATIENCE)
    assert not second.works.is_set()
    first.end()
    assert second.works.wait(PATIENCE)
    second.end()
    other.end()


def test_what_somebody_else_has_worked_out_meanwhile_is_not_waited_for(pool):
    gate, known = Gate(1), Event()
    first, second = Session(gate, pool), Session(gate, pool, object(), known.is_set)
    assert not second.works.is_set()
    known.set()
    assert second.works.wait(PATIENCE), "while the first one still works"
    second.end()
    first.end()


def test_a_queue_that_is_full_says_try_again(pool):
    gate = Gate(1, longest=2)
    sessions = [Session(gate, pool) for _ in range(3)]
    with pytest.raises(TooBusy, match=r"2 others wait already\. Try again"), gate.turn(lambda _: None):
        pass
    for session in sessions:
        session.end()


def test_what_is_done_alone_is_done_by_one():
    gate = Gate(4)
    with gate.alone("timing") as first, gate.alone("timing") as second, gate.alone("other") as third:
        assert (first, second, third) == (True, False, True)
    with gate.alone("timing") as again:
        assert again


def test_the_line_changes_once_a_second_and_the_old_one_stays_until_the_new_one_is_seen(monkeypatch):
    shown, now = [], [0.0]

    @contextmanager
    def spinner(text: str) -> Iterator[None]:
        shown.append(text)
        yield
        shown.remove(text)

    monkeypatch.setattr(queue, "st", SimpleNamespace(spinner=spinner))
    monkeypatch.setattr(queue, "monotonic", lambda: now[0])
    line, seen = queue.BusyLine(), []
    for now[0], before in ((0, 3), (0.5, 2), (1.0, 2), (1.1, 1), (1.7, 1), (2.1, 1)):
        line.say(before)
        seen.append([text.split()[4] for text in shown])
    assert seen == [["3"], ["3"], ["3", "2"], ["3", "2"], ["2"], ["2", "1"]]
    line.clear()
    assert shown == []


@pytest.mark.parametrize("use_cache", [True, False])
def test_a_search_that_nobody_waits_for_stops_at_its_next_step(tiny_model, use_cache):
    steps = []

    def ask() -> None:
        steps.append(1)
        if len(steps) == 3:
            raise Left

    with pytest.raises(Left), cancellable(ask):
        greedy(tiny_model, [[5, 6, 7, 3]], use_cache)
    assert len(steps) == 3
    greedy(tiny_model, [[5, 6, 7, 3]], use_cache)
    assert len(steps) == 3, "the question is gone with its block"


def test_a_run_that_was_abandoned_is_worked_out_by_the_next_one_who_asks(pool):
    st.cache_resource.clear()
    begun, leave, runs, lock = Event(), Event(), [], Lock()

    @cache.kept(max_entries=4)
    def double(number: int) -> int:
        with lock:
            runs.append(number)
            first = len(runs) == 1
        begun.set()
        if first:
            assert leave.wait(PATIENCE)
            raise Left
        return 2 * number

    leaving = pool.submit(double, 21)
    assert begun.wait(PATIENCE)
    waiting = [pool.submit(double, 21) for _ in range(4)]
    leave.set()
    with pytest.raises(Left):
        leaving.result(PATIENCE)
    assert [future.result(PATIENCE) for future in waiting] == [42] * 4
    assert runs == [21, 21], "one who left, one who worked it out for all others"


def test_what_is_known_is_given_while_the_model_is_busy(monkeypatch):
    st.cache_resource.clear()

    @cache.kept(max_entries=4)
    def double(number: int) -> int:
        return 2 * number

    double(4)
    monkeypatch.setattr(queue.gate(), "_arrived", lambda _: pytest.fail("it asked for a turn"))
    assert double(4) == 8
    st.cache_resource.clear()


def test_a_turn_within_a_turn_does_not_wait(monkeypatch):
    monkeypatch.setattr(queue, "gate", lambda gate=Gate(1): gate)  # noqa: B008
    with queue.turn(), queue.turn():
        assert list(queue.in_turns(iter("ab"))) == ["a", "b"]


def test_between_two_steps_of_long_work_others_have_their_turn(monkeypatch):
    one = Gate(1)
    monkeypatch.setattr(queue, "gate", lambda: one)
    for _ in queue.in_turns(iter(range(3))):
        with one.turn(lambda _: pytest.fail("the place is taken")):
            pass


@pytest.mark.parametrize(("asked", "places"), [("3", 3), ("0", 1), ("many", None), ("", None)])
def test_the_places_are_the_cores_or_what_the_environment_says(monkeypatch, asked, places):
    st.cache_resource.clear()
    monkeypatch.setenv(queue.RUNS_VARIABLE, asked)
    monkeypatch.setattr(queue.os, "cpu_count", lambda: 7)
    assert queue.gate().places == (places or 7)
    st.cache_resource.clear()


@dataclass
class Result:
    numbers: np.ndarray


def test_the_shelf_drops_what_was_unused_for_longest_and_never_more_than_it_must():
    shelf, places = cache.Shelf(room=250), [cache.Place() for _ in range(4)]
    for place in places[:2]:
        shelf.put(place, Result(np.zeros(100, np.uint8)))
    shelf.used(places[0])
    shelf.put(places[2], [Result(np.zeros(50, np.uint8)), {"a": np.zeros(50, np.uint8)}])
    assert [place.taken for place in places] == [True, False, True, False]
    assert shelf.bytes == 200
    shelf.put(places[3], Result(np.zeros(999, np.uint8)))
    assert [place.taken for place in places] == [False, False, False, True], "the newest stays, however large"


def test_a_place_that_a_cache_has_dropped_takes_no_room():
    shelf, place, other = cache.Shelf(room=250), cache.Place(), cache.Place()
    shelf.put(place, np.zeros(200, np.uint8))
    del place
    shelf.put(other, np.zeros(200, np.uint8))
    assert (shelf.bytes, other.taken) == (200, True)


def test_a_trace_s_footprint_is_its_arrays_without_the_weights(translator):
    trace = translator.trace("Two dogs", "Zwei Hunde")
    arrays = sum(cache.footprint(value) for value in vars(trace).values())
    assert cache.footprint(trace) == arrays > trace.logits.nbytes + trace.memory.nbytes
    assert cache.footprint(trace.attention("cross", 0).projections) == 0
