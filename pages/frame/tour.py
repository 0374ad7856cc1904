"""Three things to do first: each is ticked off when the person has done it, on whatever page."""

import streamlit as st

from pages import PAGES

TOUR = "tour"
"""in the session: which steps are done, and "dismissed"; absent until somebody comes to the home page"""
SEEN = "tour-seen"
"""in the session: sentence, head and temperature of the run before"""
STEPS = {
    "sentence": "Type a sentence, or take an example",
    "head": "Open a head",
    "temperature": "Move the temperature τ",
}
HOME, HEADS = PAGES["See"][0], PAGES["See"][2]


def watch(source: str, head: tuple[str, int, int], tau: float) -> None:
    """Tick off what has changed since the run before.

    Args:
        source: the sentence.
        head: kind, layer and number.
        tau: attention temperature.
    """
    state = st.session_state
    before, state[SEEN] = state.get(SEEN), (source, head, tau)
    if before is None or TOUR not in state:
        return
    if source != before[0]:
        # An example brings its head along: that is no opening of a head.
        state[TOUR] = state[TOUR] | {"sentence"}
    elif head != before[1]:
        state[TOUR] = state[TOUR] | {"head"}
    if tau != before[2]:
        state[TOUR] = state[TOUR] | {"temperature"}


def forget_place() -> None:
    """What a reset changes, nobody has done by hand."""
    st.session_state.pop(SEEN, None)


def show_tour(path: str, linked: bool) -> None:
    """The steps in one line, on the home page and then on every page, until they are done or dismissed.

    Args:
        path: of the page that is shown.
        linked: whether there is a menu, and so pages to link to.
    """
    state = st.session_state
    if TOUR not in state:
        if path != HOME.path:
            return
        state[TOUR] = frozenset()
    if "dismissed" in state[TOUR]:
        return
    done = state[TOUR].issuperset(STEPS)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="tour-line"):
        for number, (name, text) in enumerate(STEPS.items(), 1):
            _step(f"{number}. {text}", name in state[TOUR], linked and name == "head" and path != HEADS.path)
        label = "Done: close the tour" if done else "Close the tour"
        st.button(":material/close:", key="tour-close", help=label, type="tertiary", on_click=_dismiss)


def _step(text: str, done: bool, linked: bool) -> None:
    icon = ":material/check_circle:" if done else ":material/radio_button_unchecked:"
    if linked:
        st.page_link(HEADS.path, label=f"{text}{' ✓' if done else ''}", icon=icon)
    else:
        st.markdown(f"{icon} {text}{' ✓' if done else ''}", width="content")


def _dismiss() -> None:
    st.session_state[TOUR] = st.session_state[TOUR] | {"dismissed"}
