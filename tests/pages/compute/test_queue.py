"""Many sessions at once: who computes, who waits, and what becomes of the work of somebody who leaves."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from types import SimpleNamespace

import pytest
import streamlit as st

from model.cancel import cancellable
from model.generation.search import greedy
from pages.compute import queue
from pages.compute.queue import Queue, QueueFull

PATIENCE = 30
"""seconds until a test that hangs fails"""


class Left(BaseException):
    """As Streamlit's own: no `except Exception` may catch it."""


class Session:
    """Somebody in a thread of their own who asks for a turn, and works until told to stop."""

    def __init__(self, line: Queue, pool: ThreadPoolExecutor, wanted: object = None, done: Callable = lambda: False):
        self.waits, self.works, self.finish, self.gone = Event(), Event(), Event(), Event()
        self.before: list[int] = []
        self.future: Future = pool.submit(self._visit, line, wanted, done)
        assert self._waits_or_works()

    def _visit(self, line: Queue, wanted: object, done: Callable) -> str:
        with line.turn(self._tell, wanted, done):
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
    line = Queue(2)
    sessions = [Session(line, pool) for _ in range(5)]
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


def test_the_second_run_of_a_page_goes_before_the_first_run_of_who_moved_later(pool):
    line, order = Queue(1), []

    def visit(name: str, moved: float, waits: Event) -> None:
        with line.turn(lambda _: waits.set(), moved=moved):
            order.append(name)

    working = Session(line, pool)
    visits = []
    for name, moved in (("moved later", 2.0), ("moved last", 3.0), ("second run of an early move", 1.0)):
        waits = Event()
        visits.append(pool.submit(visit, name, moved, waits))
        assert waits.wait(PATIENCE)
    working.end()
    for each in visits:
        each.result(PATIENCE)
    assert order == ["second run of an early move", "moved later", "moved last"]


def test_who_leaves_while_waiting_leaves_the_queue_at_once(pool):
    line = Queue(1)
    first, second, third = (Session(line, pool) for _ in range(3))
    second.gone.set()
    with pytest.raises(Left):
        second.future.result(PATIENCE)
    first.end()
    assert third.works.wait(PATIENCE)
    third.end()
    assert not second.works.is_set()
    assert (line._waiting, line._working) == ([], [])


def test_work_that_fails_leaves_its_place(pool):
    line = Queue(1)
    with pytest.raises(RuntimeError), line.turn(lambda _: None):
        raise RuntimeError
    Session(line, pool).end()


def test_two_who_want_the_same_do_not_work_on_it_at_once_and_let_others_pass(pool):
    line, wish = Queue(2), object()
    first, second, other = (Session(line, pool, wanted) for wanted in (wish, wish, None))
    assert other.works.wait(PATIENCE)
    assert not second.works.is_set()
    first.end()
    assert second.works.wait(PATIENCE)
    second.end()
    other.end()


def test_what_somebody_else_has_worked_out_meanwhile_is_not_waited_for(pool):
    line, known = Queue(1), Event()
    first, second = Session(line, pool), Session(line, pool, object(), known.is_set)
    assert not second.works.is_set()
    known.set()
    assert second.works.wait(PATIENCE), "while the first one still works"
    second.end()
    first.end()


def test_a_queue_that_is_full_says_try_again(pool):
    line = Queue(1, most_waiting=2)
    sessions = [Session(line, pool) for _ in range(3)]
    with pytest.raises(QueueFull, match=r"2 requests already waiting\. Try again"), line.turn(lambda _: None):
        pass
    for session in sessions:
        session.end()


def test_what_is_done_alone_is_done_by_one():
    line = Queue(4)
    with line.exclusive("timing") as first, line.exclusive("timing") as second, line.exclusive("other") as third:
        assert (first, second, third) == (True, False, True)
    with line.exclusive("timing") as again:
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
    line, seen = queue.QueueLine(), []
    for now[0], before in ((0, 3), (0.5, 2), (1.0, 2), (1.1, 1), (1.7, 1), (2.1, 1)):
        line.show(before)
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


def test_a_turn_within_a_turn_does_not_wait(monkeypatch):
    monkeypatch.setattr(queue, "model_queue", lambda line=Queue(1): line)  # noqa: B008
    with queue.wait_for_turn(), queue.wait_for_turn():
        assert list(queue.in_turns(iter("ab"))) == ["a", "b"]


def test_between_two_steps_of_long_work_others_have_their_turn(monkeypatch):
    one = Queue(1)
    monkeypatch.setattr(queue, "model_queue", lambda: one)
    for _ in queue.in_turns(iter(range(3))):
        with one.turn(lambda _: pytest.fail("the place is taken")):
            pass


@pytest.mark.parametrize(("asked", "places"), [("3", 3), ("0", 1), ("many", queue.MOST_RUNS), ("", queue.MOST_RUNS)])
def test_the_places_are_a_few_cores_or_what_the_environment_says_and_share_the_cores(monkeypatch, asked, places):
    import torch

    st.cache_resource.clear()
    monkeypatch.setenv(queue.RUNS_VARIABLE, asked)
    monkeypatch.setattr(queue.os, "cpu_count", lambda: 9)
    threads = torch.get_num_threads()
    try:
        assert queue.model_queue().places == places
        assert torch.get_num_threads() == 9 // places
    finally:
        torch.set_num_threads(threads)
        st.cache_resource.clear()
