"""Cancelling work whose result nobody needs any more: searches and model runs check before every step.

The check is held in a `ContextVar`, like recordings (see hooks.py), so it belongs to the thread that set it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_CHECK: ContextVar[Callable[[], None] | None] = ContextVar("check", default=None)


@contextmanager
def cancellable(check: Callable[[], None] | None) -> Iterator[None]:
    """Call `check` before each step of a search and each run of the model inside the block.

    `check` cancels the work by raising; the exception leaves the block. None: nothing is cancelled.
    """
    token = _CHECK.set(check)
    try:
        yield
    finally:
        _CHECK.reset(token)


def check_cancelled() -> None:
    """Raise what the surrounding `cancellable` block's check raises, if it does."""
    if check := _CHECK.get():
        check()
