"""Trainings that visitors have started: few at once, the others in line; each is freed a minute after its last page."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from secrets import token_hex
from threading import Lock, Timer
from time import monotonic
from typing import Any, Protocol

import streamlit as st

MOST_LETTERS, MOST_CORRECTIONS = 4, 2
"""trainings of the letters task, and corrections, at once"""
KEPT_SECONDS = 60.0
SHARED_SECONDS = 600.0
"""that one may have its place while others wait"""
HEARTBEAT_SECONDS = 15.0
"""after which an open page says again that it is there"""
LEAST_SECONDS = 1.0
"""between two looks for trainings that nobody shows any more"""


class Training(Protocol):
    """What is kept here."""

    def close(self) -> None:
        """Take no more steps."""


@dataclass
class _Kept:
    make: Callable[[], Training]
    seen: float
    begun: float | None = None
    """when it was made; None: it waits"""
    training: Any = None
    """None: it waits, or is being made"""
    pages: int = 0
    """that are being drawn, which may wait for the model longer than a training is kept"""


def call_later(seconds: float, function: Callable[[], None]) -> None:
    """Call the function in a thread of its own, which does not keep the process from ending."""
    timer = Timer(seconds, function)
    timer.daemon = True
    timer.start()


class Trainings:
    """By id, which nobody can guess, in the order of arrival, `most` at once. All threads share it.

    One ends `kept_seconds` after a page has last asked for it, and after `shared_seconds` if others wait. `clock` has
    seconds that only grow; `call_later` calls a function after so many of them.
    """

    def __init__(
        self,
        most: int,
        kept_seconds: float = KEPT_SECONDS,
        shared_seconds: float = SHARED_SECONDS,
        clock: Callable[[], float] = monotonic,
        call_later: Callable[[float, Callable[[], None]], None] = call_later,
    ) -> None:
        self.most, self._kept_seconds, self._shared_seconds, self._clock = most, kept_seconds, shared_seconds, clock
        self._lock, self._call_later, self._watched = Lock(), call_later, False
        self._kept: dict[str, _Kept] = {}

    def enter(self, make: Callable[[], Training]) -> str:
        """Stand in line for a training, and return its id."""
        name = token_hex(8)
        with self._lock:
            self._drop_old()
            self._kept[name] = _Kept(make, self._clock())
            self._watch()
        return name

    def ahead(self, name: str) -> int | None:
        """How many have to end before this one begins; 0: it may. None: there is none of this id, or none any more."""
        with self._lock:
            self._drop_old()
            if name not in self._kept:
                return None
            self._kept[name].seen = self._clock()
            return max([*self._kept].index(name) - self.most + 1, 0)

    @contextmanager
    def shown(self, name: str) -> Iterator[None]:
        """While its page is drawn inside the block, it is kept, however long that takes; nothing for an unknown id."""
        with self._lock:
            kept = self._kept.get(name, _Kept(lambda: None, 0.0))
            kept.pages += 1
        try:
            yield
        finally:
            with self._lock:
                kept.pages -= 1
                kept.seen = self._clock()

    def begin(self, name: str) -> None:
        """Make the training, if its turn has come and nobody has begun; if that fails, its place is free again."""
        with self._lock:
            kept = self._kept.get(name)
            if kept is None or kept.begun is not None or [*self._kept].index(name) >= self.most:
                return
            kept.begun = self._clock()
        try:
            training = kept.make()
        except BaseException:
            with self._lock:
                self._kept.pop(name, None)
            raise
        with self._lock:
            kept.training, kept.seen = training, self._clock()
            ended = name not in self._kept
        if ended:
            training.close()

    def find(self, name: str) -> Any:
        """The training of this id, which is kept from now on again; None: it has not begun, or there is none."""
        with self._lock:
            self._drop_old()
            kept = self._kept.get(name)
            if kept is None:
                return None
            kept.seen = self._clock()
            return kept.training

    def end(self, name: str) -> None:
        """Drop a training at once."""
        with self._lock:
            kept = self._kept.pop(name, None)
        if kept and kept.training:
            kept.training.close()

    def __len__(self) -> int:
        with self._lock:
            self._drop_old()
            return len(self._kept)

    def _watch(self) -> None:
        """See to it that each is dropped in time, also if nobody comes any more."""
        if self._kept and not self._watched:
            first = min(kept.seen for kept in self._kept.values())
            self._watched = True
            self._call_later(max(first + self._kept_seconds - self._clock(), LEAST_SECONDS), self._look)

    def _look(self) -> None:
        with self._lock:
            self._drop_old()
            self._watched = False
            self._watch()

    def _drop_old(self) -> None:
        now = self._clock()
        for name, kept in list(self._kept.items()):
            waits = len(self._kept) > self.most
            held = kept.begun is not None and now - kept.begun > self._shared_seconds
            is_made = kept.begun is not None and kept.training is None
            is_left = not kept.pages and now - kept.seen > self._kept_seconds
            if not is_made and (is_left or (waits and held)):
                del self._kept[name]
                if kept.training:
                    kept.training.close()


@st.cache_resource(show_spinner=False)
def all_trainings(most: int) -> Trainings:
    """Those of this process of which there may be so many: MOST_LETTERS, or MOST_CORRECTIONS."""
    return Trainings(most)
