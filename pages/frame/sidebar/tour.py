"""Three things to try first; each is ticked off once the person has done it, on any page."""

import streamlit as st

from model.language import tr
from model.run import Place
from pages import page_of
from pages.text import names_in
from pages.widgets.page_links import linked_pages

TOUR = "tour"
"""in the session: the finished steps, and "dismissed"; absent until the person first opens the home page"""
SEEN = "tour-seen"
"""in the session: model, sentence, head and temperature of the run before"""
STEPS = names_in("tour")
HOME, HEADS = page_of("translate"), page_of("heads_and_layers")


def track_progress(model: str, source: str, place: Place, tau: float) -> None:
    """Tick off the steps whose value has changed since the run before; another model brings its own values."""
    state = st.session_state
    before, state[SEEN] = state.get(SEEN), (model, source, place, tau)
    if before is None or before[0] != model or TOUR not in state:
        return
    if source != before[1]:
        # A lesson also chooses a head; that does not count as opening one. Nor does an emptied field as a sentence.
        state[TOUR] = state[TOUR] | ({"sentence"} if source.strip() else set())
    elif place != before[2]:
        state[TOUR] = state[TOUR] | {"head"}
    # At another head the slider shows what is set there.
    if tau != before[3] and place == before[2]:
        state[TOUR] = state[TOUR] | {"temperature"}


def show_tour(path: str) -> None:
    """The steps in one line, from the first visit to the home page until they are closed; `path` is the page's."""
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
            _show_step(f"{number}. {tr(text)}", name, name in state[TOUR], path)
        label = tr("Done: close the tour") if done else tr("Close the tour")
        close = {"on_click": state.update, "args": ({TOUR: state[TOUR] | {"dismissed"}},)}
        st.button(":material/close:", key="tour-close", help=label, type="tertiary", **close)


def _show_step(text: str, name: str, done: bool, path: str) -> None:
    """A link to the page where the step is done, or a button that focuses its control, as the here component does."""
    icon = ":material/check_circle:" if done else ":material/radio_button_unchecked:"
    label = f"{text}{' ✓' if done else ''}"
    if name != "head":
        st.button(label, key=f"tour-{name}", icon=icon, type="tertiary")
    elif path != HEADS.path and linked_pages.get():
        st.page_link(linked_pages.get()[HEADS.path], label=label, icon=icon)
    else:
        st.markdown(f"{icon} {label}", width="content")
