"""The end of the sidebar: the link to this view, and Reset."""

import streamlit as st

from pages.frame.tour import TOUR
from pages.widgets.canvas import component
from pages.widgets.controls import reset_controls


def link_and_reset() -> None:
    """The address of what is on screen, with a button that copies it; and a button that resets every page."""
    link, reset = st.columns(2)
    with link.popover("Link", icon=":material/link:", width="stretch"):
        component("share")(key="share")
    reset.button("Reset", icon=":material/restart_alt:", width="stretch", on_click=reset_controls, args=((TOUR,),))
