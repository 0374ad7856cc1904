"""Work that starts at the press of a button and shows its progress; the result is shared by all sessions."""

from collections.abc import Callable, Iterator
from typing import Any

import streamlit as st

from model.language import tr
from pages.compute.cache import cached, put
from pages.compute.queue import in_turns

PLAY = ":material/play_arrow:"


def clicked(label: str, key: str, icon: str = PLAY, disabled: bool = False) -> bool:
    """A button; True in the one run that its press starts."""
    press = {"on_click": st.session_state.update, "args": ({f"{key}-clicked": True},)}
    st.button(label, key=key, icon=icon, disabled=disabled, **press)
    return st.session_state.pop(f"{key}-clicked", False)


def compute_on_request(
    label: str, key: str, case: tuple[Any, ...], steps: Callable[[], Iterator[tuple[float, Any]]]
) -> Any:
    """The result of long work and the button that starts it; None while there is no result yet.

    `case` is everything that the result depends on. `steps` yields the share that is done, 0 to 1, and what is known so
    far; the last one is the result.
    """
    found = cached(key, *case)
    if clicked(label, key, disabled=found is not None) and found is None:
        return compute_with_progress(key, case, steps)
    return found


def compute_with_progress(key: str, case: tuple[Any, ...], steps: Callable[[], Iterator[tuple[float, Any]]]) -> Any:
    """The result of work that takes a while, under a progress bar unless it is known; arguments as above."""
    found = cached(key, *case)
    if found is None:
        bar = st.progress(0.0, tr("The model is running …"))
        for share, found in in_turns(steps()):  # noqa: B007 - the last one is the result
            bar.progress(share, f"{share:.0%}")
        bar.empty()
        put(found, key, *case)
    return found
