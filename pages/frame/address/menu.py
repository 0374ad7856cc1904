"""The browser window and the menu; links straight to a page also arrive here."""

from collections.abc import Mapping
from copy import copy
from functools import cache
from itertools import chain
from pathlib import Path
from types import MappingProxyType

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager
from streamlit.runtime.scriptrunner_utils.script_run_context import ThreadState, get_script_run_ctx

from model.language import language, tr
from pages import EVERY, PAGES
from pages.frame.address.language import find_language, show_switch

ROOT = Path(__file__).parents[3]
HOME = EVERY[0]


def route() -> "st.Page":
    """Set up the window and draw the menu; return the page that the URL asks for.

    Until a process has called `st.navigation` once, Streamlit takes the folder `pages` for its older kind of
    multipage app: first visits then run a page's file without app.py, or app.py as if it were one of the pages.
    Such a run starts over, and then app.py is in charge.
    """
    find_language()
    # A picture of our own: an icon named `:material/...:` would be fetched from a font server.
    icon, sidebar = ROOT / "pages/frame/style/favicon.svg", "collapsed" if st.context.is_embedded else "auto"
    st.set_page_config(page_icon=icon, layout="wide", initial_sidebar_state=sidebar)
    # First of all: the page keeps its room free.
    with st.sidebar, st.container(key="sidebar-head", horizontal=True, vertical_alignment="center"):
        st.markdown("**Attention Explorer**", width="content")
        show_switch()
    # Two signs, since another visitor's run may have called st.navigation in the meantime.
    started_without_app = PagesManager.uses_pages_directory or runs_as_page()
    # Each run notes in its own copies which page it shows.
    sections = {tr(section): list(map(copy, pages)) for section, pages in _sections(language().code).items()}
    # With `?embed=true`, in a page of somebody else's, a view stands alone.
    chosen = st.navigation(sections, position="hidden" if st.context.is_embedded else "top")
    st.set_page_config(page_title=f"{chosen.title} · Attention Explorer")
    if started_without_app:
        st.rerun()
    return chosen


@cache
def _sections(_code: str) -> dict[str, list["st.Page"]]:
    """The pages of each section, with titles in the language; for each of them Streamlit looks for its file."""
    return {
        section: [
            st.Page(ROOT / page.path, title=tr(page.title), icon=page.icon, default=page is HOME) for page in pages
        ]
        for section, pages in PAGES.items()
    }


def pages_by_path() -> Mapping[str, "st.Page"]:
    """Path of a page's file -> its entry in the menu; a link to that is found without looking for the file."""
    paths = (page.path for page in EVERY)
    return MappingProxyType(dict(zip(paths, chain(*_sections(language().code).values()), strict=True)))


def runs_as_page() -> bool:
    """Whether Streamlit runs the calling code as one of its pages, not as the script that it was started with."""
    run = get_script_run_ctx(suppress_warning=True)
    return run is not None and ThreadState.get().active_script_hash != run.pages_manager.main_script_hash
