"""The row above a picture that fills the screen: where one is, the way on, and the way out."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from pages import Page
from pages.views.attention_step_by_step import STEP
from pages.widgets.canvas import component
from pages.widgets.controls import set_controls
from pages.widgets.present import stop_presenting


def show_present_row(page: Page, tabs: Sequence[str]) -> None:
    """Draw the row; the arrow keys go through the steps of a head, or through the tabs.

    Args:
        page: that is open.
        tabs: the titles of its tabs; empty: it has none.
    """
    state = st.session_state
    if page.name == "attention_step_by_step":
        key, places, names = STEP.key, list(range(STEP.limits[0], STEP.limits[1] + 1)), []
        asked = state.get(key, st.query_params.get(key, STEP.start))
        at = int(asked) if str(asked).isdigit() else STEP.start
    else:
        key, places, names = page.tabs_key, list(tabs), list(tabs)
        at = state.get(key) or st.query_params.get(key) or page.first_tab
    number = places.index(at) if at in places else 0
    st.markdown(f"**{page.title}**" + (f" · {names[number]}" if names else ""), width="stretch")
    if len(places) > 1:
        for label, icon, moves, shortcut in (("Back", "arrow_back", -1, "Left"), ("Next", "arrow_forward", 1, "Right")):
            there = number + moves
            go = partial(set_controls, {key: places[there % len(places)]})
            st.button(
                label, key=f"present-{label}", icon=f":material/{icon}:", disabled=not 0 <= there < len(places),
                on_click=go, shortcut=shortcut,
            )  # fmt: skip
        st.markdown(f"{number + 1} of {len(places)}")
    st.button("Leave", key="present-leave", icon=":material/close:", on_click=stop_presenting, shortcut="Esc")
    component("present")(key="present-fit", data={"at": str(at)}, width="content", height="content")
