"""Window and menu, and the way to it from a link straight to a page."""

from pathlib import Path

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager

from pages import built_pages

FOLDER = Path(__file__).parent


def route() -> "st.Page":
    """Set up the window and draw the menu; return the page that the URL asks for.

    Streamlit takes a folder named `pages` for its own older kind of multipage app until a process has
    called `st.navigation` once: a first visit then runs a page's file without app.py, or app.py as
    if it were one of the pages. In that case the run starts over, and app.py is in charge.
    """
    # A picture of our own: an icon named `:material/...:` would be fetched from a font server.
    st.set_page_config(page_title="Attention Explorer", page_icon=FOLDER / "favicon.svg", layout="wide")
    st.html(FOLDER / "style.css")
    started_without_app = PagesManager.uses_pages_directory
    pages = {
        section: [
            st.Page(page.path, title=page.title, icon=page.icon, default=page.path == "pages/translate.py")
            for page in pages
        ]
        for section, pages in built_pages().items()
        if pages
    }
    chosen = st.navigation(pages, position="top")
    if started_without_app:
        st.rerun()
    return chosen


def ensure_routed() -> None:
    """For a page: if its file was run without app.py, start over with it."""
    if PagesManager.uses_pages_directory:
        route()
