"""What if: change the running model, and see before, after and difference."""

import streamlit as st

from pages.components.frame import open_page
from pages.components.proof import proof_strip

TABS = {}

view = open_page(__file__)
for tab, show in zip(st.tabs(list(TABS), key="part", bind="query-params") if TABS else (), TABS.values(), strict=True):
    if tab.open:
        with tab:
            show(view)
proof_strip(view)
