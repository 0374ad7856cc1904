"""Attention Explorer: the frame around every page. Start it with `streamlit run app.py`."""

import streamlit as st

from pages.components.menu import route


def main() -> None:
    """Menu, then sidebar, then the page."""
    page = route()
    with st.spinner("Starting the model …"):
        # Not before the menu is on screen: torch takes seconds to import.
        from pages.components.inputs import shared_inputs

    with shared_inputs():
        page.run()


main()
