"""Attention Explorer: the frame around every page. Start it with `streamlit run app.py`."""

from pathlib import Path

import streamlit as st

from pages.components.menu import route

# A file of our own: the browser would fetch an icon named `:material/...:` from a font server.
FAVICON = Path(__file__).parent / "pages" / "components" / "favicon.svg"


def main() -> None:
    """Menu, then sidebar, then the page."""
    st.set_page_config(page_title="Attention Explorer", page_icon=FAVICON, layout="wide")
    page = route()
    # Not before the menu is on screen: torch takes seconds to import.
    from pages.components.inputs import shared_inputs

    with shared_inputs():
        page.run()


main()
