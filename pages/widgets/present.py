"""Present: the picture of the open tab fills the screen, for a projector."""

import streamlit as st

from pages.widgets.controls import is_on

PRESENT = "present"
"""in the session and in the URL: whether the picture fills the screen"""


FIT = "present-fit"
"""key of the component that fits the picture to the screen"""


def presents() -> bool:
    """Whether the page shows its picture alone."""
    return is_on(PRESENT)


def screen_factor() -> float:
    """How much larger the screen is than 1280 x 720 pixels, as it last told; a first run does not know it yet."""
    return (st.session_state.get(FIT) or {}).get("by") or 1


def start_presenting() -> None:
    """Before the page runs again: the picture fills the screen."""
    st.session_state[PRESENT] = "true"


def stop_presenting() -> None:
    """Before the page runs again: everything is there again."""
    st.session_state[PRESENT] = ""
