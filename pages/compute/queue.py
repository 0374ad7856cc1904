"""Who may compute: a few runs of the model at once, in order of arrival, and none for somebody who has left."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Event, Lock
from time import monotonic
from typing import TypeVar

import streamlit as st
from streamlit.runtime.scriptrunner_utils.script_run_context import get_run_yield_check

from model.cancel import cancellable
from model.checkpoints.devices import OutOfMemory, free_memory

RUNS_VARIABLE = "ATTENTION_EXPLORER_RUNS"
LONGEST_QUEUE = 100
"""sessions that may wait; whoever comes later is asked to try again"""
LOOK_AGAIN = 0.1
"""seconds between two looks at the queue"""

Step = TypeVar("Step")
_HAS_TURN: ContextVar[bool] = ContextVar("has_turn", default=False)


class TooBusy(Exception):
    """The queue is full; the sentence says what to do."""


@dataclass(eq=False)
class _Ticket:
    """A place in the queue."""

    wanted: object
    go: Event = field(default_factory=Event)


class Gate:
    """Lets at most `places` compute at once, in order of arrival; all threads share it, and none holds its lock long.

    Args:
        places: how many may compute at once.
        longest: how many may wait.
    """

    def __init__(self, places: int, longest: int = LONGEST_QUEUE) -> None:
        self.places, self.longest = places, longest
        self._lock = Lock()
        self._waiting: list[_Ticket] = []
        self._working: list[_Ticket] = []
        self._alone: set[str] = set()

    @contextmanager
    def turn(
        self, tell: Callable[[int], None], wanted: object = None, done: Callable[[], bool] = lambda: False
    ) -> Iterator[None]:
        """Wait, then compute in the block.

        Args:
            tell: called again and again with how many are before; what it raises ends the waiting.
            wanted: what is to be worked out, by identity: one at a time works on it. None: nobody else wants it.
            done: whether somebody else has worked it out meanwhile: then the block begins at once.

        Raises:
            TooBusy: too many wait already.
        """
        ticket = self._arrived(wanted)
        try:
            while not ticket.go.is_set() and not done():
                tell(self._before(ticket))
                ticket.go.wait(LOOK_AGAIN)
            yield
        finally:
            self._leave(ticket)

    @contextmanager
    def alone(self, what: str) -> Iterator[bool]:
        """Whether nobody else does `what` just now; then nobody else will while the block runs."""
        with self._lock:
            mine = what not in self._alone
            self._alone.add(what)
        try:
            yield mine
        finally:
            if mine:
                with self._lock:
                    self._alone.discard(what)

    def _arrived(self, wanted: object) -> _Ticket:
        ticket = _Ticket(wanted)
        with self._lock:
            self._waiting.append(ticket)
            self._let_in()
            if len(self._waiting) > self.longest and not ticket.go.is_set():
                self._waiting.remove(ticket)
                raise TooBusy(f"The model is busy: {self.longest} others wait already. Try again in a minute.")
        return ticket

    def _before(self, ticket: _Ticket) -> int:
        """How many compute now, or will before this one."""
        with self._lock:
            return len(self._working) + (self._waiting.index(ticket) if ticket in self._waiting else 0)

    def _leave(self, ticket: _Ticket) -> None:
        with self._lock:
            (self._working if ticket in self._working else self._waiting).remove(ticket)
            self._let_in()

    def _let_in(self) -> None:
        """The first ones for whom there is room, and whose wish nobody is working on."""
        for ticket in list(self._waiting):
            if len(self._working) >= self.places:
                return
            if ticket.wanted is None or all(ticket.wanted is not other.wanted for other in self._working):
                self._waiting.remove(ticket)
                self._working.append(ticket)
                ticket.go.set()


@st.cache_resource(show_spinner=False)
def gate() -> Gate:
    """The one gate of this process: a place for each processor core, or as many as ATTENTION_EXPLORER_RUNS says."""
    asked = os.environ.get(RUNS_VARIABLE, "")
    return Gate(max(int(asked), 1) if asked.isdecimal() else os.cpu_count() or 1)


@contextmanager
def turn(wanted: object = None, done: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Compute in the block when it is this session's turn; until then the page says how many are before it.

    Once the person has left, or asked for something else, waiting ends, and so does the model's work at its next step.
    Where too many wait already, the page says so and ends. A turn within a turn does not wait.

    Args:
        wanted: see `Gate.turn`.
        done: see `Gate.turn`.
    """
    if _HAS_TURN.get():
        yield
        return
    ask, line = get_run_yield_check(), BusyLine()

    def tell(before: int) -> None:
        if ask:
            ask()
        line.say(before)

    try:
        with gate().turn(tell, wanted, done), _at_work(ask):
            line.clear()
            yield
    except TooBusy as error:
        st.warning(str(error), icon=":material/hourglass:")
        st.stop()
    finally:
        line.clear()


@contextmanager
def _at_work(ask: Callable[[], None] | None) -> Iterator[None]:
    token = _HAS_TURN.set(True)
    try:
        with cancellable(ask):
            yield
    finally:
        _HAS_TURN.reset(token)


def in_turns(steps: Iterator[Step]) -> Iterator[Step]:
    """The same steps, each in a turn of its own: between two steps of long work others may compute.

    Where a GPU's memory is too small for it, the page says so and ends.
    """
    end = object()
    while True:
        try:
            with turn():
                step = next(steps, end)
        except OutOfMemory:
            free_memory()
            st.error("The GPU has too little memory left for this. Choose cpu at “Runs on” in the sidebar.")
            st.stop()
        if step is end:
            return
        yield step


AT_LEAST = 1.0
"""seconds that a number stands"""


UNTIL_SEEN = 0.6
"""seconds after which a spinner is on screen: Streamlit shows none that lasts less than half a second"""


class BusyLine:
    """A spinner, so that nothing below it moves; a new one for each number, the old one staying until it is seen."""

    def __init__(self) -> None:
        self._lines: list[tuple[float, ExitStack]] = []
        self._said = 0

    def say(self, before: int) -> None:
        """Call it again and again."""
        now = monotonic()
        if before != self._said and (not self._lines or now - self._lines[-1][0] >= AT_LEAST):
            line = ExitStack()
            line.enter_context(st.spinner(f"The model is busy: {before} before you"))
            self._lines.append((now, line))
            self._said = before
        if len(self._lines) > 1 and now - self._lines[-1][0] >= UNTIL_SEEN:
            self._lines.pop(0)[1].close()

    def clear(self) -> None:
        with ExitStack() as all_lines:
            while self._lines:
                all_lines.push(self._lines.pop()[1])
