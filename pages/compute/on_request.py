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
    st.button(label, key=key, icon=icon, disabled=disabled, on_click=_remember_press, args=(key,))
    return st.session_state.pop(f"{key}-clicked", False)


def compute_on_request(
    label: str, key: str, case: tuple[Any, ...], steps: Callable[[], Iterator[tuple[float, Any]]], icon: str = PLAY
) -> Any:
    """The result of long work and the button that starts it; None while there is no result yet.

    Args:
        label: of the button.
        key: of the button.
        case: everything the result depends on.
        steps: yields the share that is done, 0 to 1, and what is known so far; the last one is the result.
        icon: of the button.
    """
    found = cached(key, *case)
    if clicked(label, key, icon, disabled=found is not None) and found is None:
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


def _remember_press(key: str) -> None:
    st.session_state[f"{key}-clicked"] = True
