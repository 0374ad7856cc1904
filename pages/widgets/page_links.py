"""Links to other pages: single ones, and the home page's cards."""

from contextvars import ContextVar

import streamlit as st

from pages import PAGES, page_of

has_menu: ContextVar[bool] = ContextVar("has_menu", default=False)
"""whether app.py, and so the menu, is around the page: only then are there pages to link to"""


def links(**labels: str) -> None:
    """A link to each of these pages, given by the name of its file; the sidebar's choices are kept."""
    if has_menu.get():
        for name, label in labels.items():
            page = page_of(f"{name}.py")
            st.page_link(page.path, label=label, icon=page.icon)


def link_with(label: str, name: str, **chosen: str) -> None:
    """A link to a page with other parameters than the present ones; the sidebar's other choices are kept.

    Args:
        label: what the page will show.
        name: of the page's file.
        chosen: URL parameters that belong to no control; a control's own value would take precedence.
    """
    if has_menu.get():
        page = page_of(f"{name}.py")
        st.page_link(page.path, label=label, icon=page.icon, query_params=chosen)


def cards(file: str) -> None:
    """A card for every page of PAGES but the one in `file`, section by section; all of it is the link."""
    here = page_of(file)
    with st.container(key="cards"):
        for page in (page for pages in PAGES.values() for page in pages if page != here):
            label = f"**{page.title}** {page.summary}"
            if has_menu.get():
                st.page_link(page.path, label=label, icon=page.icon)
            else:
                st.markdown(label)
