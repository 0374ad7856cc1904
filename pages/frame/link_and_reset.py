"""The end of the sidebar: the link to this view, and the way back to the beginning."""

import streamlit as st
from streamlit.runtime.scriptrunner_utils.script_run_context import get_script_run_ctx

from pages.frame.tour import TOUR, forget_place
from pages.parts.attention_step_by_step import CELL
from pages.widgets.canvas import component

KEPT = (TOUR,)
"""what of the session a reset leaves alone"""
SET_BY_THEIR_PAGE = ("step", *CELL)
"""widgets whose page sets them before it draws them, where the session has no value"""
PLAIN = str | int | float | tuple | list | None
"""what a person chooses with a field; clicks on pictures and buttons are no such thing"""


def link_and_reset() -> None:
    """The address of what is on screen, with a button that copies it; and Reset."""
    link, reset = st.columns(2)
    with link.popover("Link", icon=":material/link:", width="stretch"):
        component("share")(key="share")
    reset.button("Reset", icon=":material/restart_alt:", width="stretch", on_click=_reset)


def _reset() -> None:
    """Every choice on every page becomes what it was at first."""
    state, session = st.session_state, get_script_run_ctx().session_state._state
    forget_place()
    for key in [key for key in state if key not in KEPT]:
        widget = session._new_widget_state.widget_metadata.get(session._key_id_mapper.get_id_from_key(key, ""))
        if widget is None or key in SET_BY_THEIR_PAGE:
            del state[key]
        elif widget.value_type != "trigger_value" and isinstance(first := widget.deserializer(None), PLAIN):
            # Deleted, it would come back from the browser.
            state[key] = first
    st.query_params.from_dict({})
