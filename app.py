"""Attention Explorer: the frame around every page. Start it with `streamlit run app.py`."""

import streamlit as st

from pages.components.menu import route

st.set_page_config(page_title="Attention Explorer", page_icon=":material/hub:", layout="wide")
page = route()

# After the menu: torch takes seconds to import, and the menu is on screen meanwhile.
from pages.components.inputs import shared_inputs  # noqa: E402

with shared_inputs():
    page.run()
