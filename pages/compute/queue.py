"""First-come, first-served queue for model runs; a visitor's request is dropped when they leave.

A page may need several runs: all of them count from the visitor's move, so that who moved first has the page first.
"""

import os
from bisect import insort
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Event, Lock
from time import monotonic
from typing import TypeVar

import streamlit as st
from streamlit.runtime.scriptrunner_utils.script_run_context import get_run_yield_check, get_script_run_ctx

from model.cancel import cancellable
from model.checkpoints.devices import OutOfMemory, free_memory, share_cores
from model.language import Sentence, sentence, tr, tr_error

RUNS_VARIABLE = "ATTENTION_EXPLORER_RUNS"
MOST_RUNS = 4
"""at once, unless ATTENTION_EXPLORER_RUNS says otherwise: with more, Python runs too few of them at the same time"""
MOST_WAITING = 100
"""requests that may wait; later ones are asked to try again"""
POLL_SECONDS = 0.1

Step = TypeVar("Step")
_HAS_TURN: ContextVar[bool] = ContextVar("has_turn", default=False)
_MOVED: ContextVar[float | None] = ContextVar("moved", default=None)
"""when the visitor made the move that this page answers, by `monotonic`"""


class QueueFull(Exception):
    """Too many requests wait; the message says what to do."""


@dataclass(eq=False)
class _Request:
    key: Hashable
    """of the result it computes; None: no other request computes the same"""
    moved: float
    """when the visitor made the move behind it; the earliest goes first"""
    go: Event = field(default_factory=Event)


class Queue:
    """Lets at most `places` requests compute at once, in the order of the moves behind them, while `most_waiting` may
    wait.

    All threads share it.
    """

    def __init__(self, places: int, most_waiting: int = MOST_WAITING) -> None:
        self.places, self.most_waiting = places, most_waiting
        self._lock = Lock()
        self._waiting: list[_Request] = []
        self._working: list[_Request] = []
        self._exclusive: set[str] = set()

    @contextmanager
    def turn(
        self,
        report: Callable[[int], None],
        key: Hashable = None,
        done: Callable[[], bool] = lambda: False,
        moved: float | None = None,
    ) -> Iterator[None]:
        """Wait, then compute inside the block.

        Args:
            report: called repeatedly with the number of requests ahead; an exception it raises ends the waiting.
            key: of the result; requests with equal keys never compute at the same time. None: equal to no other.
            done: whether another request has stored the result meanwhile; then the block begins at once.
            moved: when the visitor made the move behind this request; None: now.

        Raises:
            QueueFull: too many requests wait already.
        """
        request = self._enter(key, monotonic() if moved is None else moved)
        try:
            while not request.go.is_set() and not done():
                report(self._ahead_of(request))
                request.go.wait(POLL_SECONDS)
            yield
        finally:
            self._leave(request)

    @contextmanager
    def exclusive(self, name: str) -> Iterator[bool]:
        """True if the block of this name is free; no other session then enters it until this one leaves."""
        with self._lock:
            free = name not in self._exclusive
            self._exclusive.add(name)
        try:
            yield free
        finally:
            if free:
                with self._lock:
                    self._exclusive.discard(name)

    def _enter(self, key: Hashable, moved: float) -> _Request:
        request = _Request(key, moved)
        with self._lock:
            insort(self._waiting, request, key=lambda waiting: waiting.moved)
            self._start_next()
            if len(self._waiting) > self.most_waiting and not request.go.is_set():
                self._waiting.remove(request)
                raise QueueFull(
                    sentence(
                        "The model is busy: {requests} already waiting. Try again in a minute.",
                        requests=_requests(self.most_waiting),
                    )
                )
        return request

    def _ahead_of(self, request: _Request) -> int:
        with self._lock:
            return len(self._working) + (self._waiting.index(request) if request in self._waiting else 0)

    def _leave(self, request: _Request) -> None:
        with self._lock:
            (self._working if request in self._working else self._waiting).remove(request)
            self._start_next()

    def _start_next(self) -> None:
        """Start the first waiting requests for which there is a place and whose result nobody is computing."""
        for request in list(self._waiting):
            if len(self._working) >= self.places:
                return
            if request.key is None or all(request.key != other.key for other in self._working):
                self._waiting.remove(request)
                self._working.append(request)
                request.go.set()


@st.cache_resource(show_spinner=False)
def model_queue() -> Queue:
    """The one queue of this process: as many places as ATTENTION_EXPLORER_RUNS says, or a place for each core."""
    said = os.environ.get(RUNS_VARIABLE, "")
    places = max(int(said), 1) if said.isdecimal() else min(os.cpu_count() or 1, MOST_RUNS)
    share_cores(places)
    return Queue(places)


@contextmanager
def wait_for_turn(key: Hashable = None, done: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Compute inside the block when it is this session's turn; until then the page says how many are ahead.

    When the visitor leaves, or asks for something else, the waiting ends, and so does the model's work at its next
    step. If too many wait already, the page says so and stops. A turn inside a turn does not wait. `key` and `done` are
    those of `Queue.turn`.
    """
    if _HAS_TURN.get():
        yield
        return
    check_visitor, line = get_run_yield_check(), QueueLine()

    def report(ahead: int) -> None:
        if check_visitor:
            check_visitor()
        if has_page():
            line.show(ahead)

    try:
        with model_queue().turn(report, key, done, _MOVED.get()), _take_turn(check_visitor):
            line.clear()
            yield
    except QueueFull as error:
        st.warning(tr_error(error), icon=":material/hourglass:")
        st.stop()
    finally:
        line.clear()


@contextmanager
def _take_turn(check_visitor: Callable[[], None] | None) -> Iterator[None]:
    token = _HAS_TURN.set(True)
    try:
        with cancellable(check_visitor):
            yield
    finally:
        _HAS_TURN.reset(token)


def has_page() -> bool:
    """Whether this thread draws a visitor's page; a thread that computes in advance has none for a spinner."""
    return get_script_run_ctx(suppress_warning=True) is not None


def answer_move() -> None:
    """Where a page begins: what it needs from here on counts from now, however often it has to wait."""
    _MOVED.set(monotonic())


def in_turns(steps: Iterator[Step]) -> Iterator[Step]:
    """The same steps, each in a turn of its own, so that others can compute between two steps of long work.

    If the GPU runs out of memory, the page says so and stops.
    """
    end = object()
    while True:
        answer_move()  # or each of its steps would go before everybody who came meanwhile
        try:
            with wait_for_turn():
                step = next(steps, end)
        except OutOfMemory:
            free_memory()
            st.error(tr("The GPU has too little memory left for this. Choose cpu under “Runs on” in the sidebar."))
            st.stop()
        if step is end:
            return
        yield step


class QueueLine:
    """A spinner that says how many requests are ahead; as a spinner it moves nothing below it.

    Streamlit shows no spinner that lasts less than half a second, so the old line stays until the new one is visible.
    """

    SHOWN_SECONDS = 1.0
    VISIBLE_AFTER = 0.6

    def __init__(self) -> None:
        self._lines: list[tuple[float, ExitStack]] = []
        self._ahead = 0

    def show(self, ahead: int) -> None:
        """Show the number; call it repeatedly."""
        now = monotonic()
        if ahead != self._ahead and (not self._lines or now - self._lines[-1][0] >= self.SHOWN_SECONDS):
            line = ExitStack()
            line.enter_context(st.spinner(tr("The model is busy: {requests} ahead of you", requests=_requests(ahead))))
            self._lines.append((now, line))
            self._ahead = ahead
        if len(self._lines) > 1 and now - self._lines[-1][0] >= self.VISIBLE_AFTER:
            self._lines.pop(0)[1].close()

    def clear(self) -> None:
        with ExitStack() as all_lines:
            while self._lines:
                all_lines.push(self._lines.pop()[1])


def _requests(count: int) -> Sentence:
    return sentence("1 request") if count == 1 else sentence("{count} requests", count=count)
