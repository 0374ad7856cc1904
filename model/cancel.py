"""Work that nobody waits for any more: searches ask at every step, and stop.

Like what a run records (see hooks.py), the question is held in a `ContextVar`: it belongs to the thread that asked.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ASK: ContextVar[Callable[[], None] | None] = ContextVar("ask", default=None)


@contextmanager
def stoppable(ask: Callable[[], None] | None) -> Iterator[None]:
    """While the block runs, `ask` is called before each step of a search and each run of the model.

    It returns where the work is still wanted, and raises where it is not; the exception ends the work. None: go on.
    """
    token = _ASK.set(ask)
    try:
        yield
    finally:
        _ASK.reset(token)


def still_wanted() -> None:
    """Ask whoever waits for this work; raises what they raise."""
    if ask := _ASK.get():
        ask()
