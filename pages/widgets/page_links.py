"""Ways to other pages: the home page's cards, one for every other page, and single links."""

import streamlit as st

from pages import PAGES
from pages.frame.open_page import page_of
from pages.frame.sidebar import framed


def links(**labels: str) -> None:
    """A link to each of these pages, by the name of its file; everything chosen in the sidebar comes along."""
    if framed():
        for name, label in labels.items():
            page = page_of(f"{name}.py")
            st.page_link(page.path, label=label, icon=page.icon)


def way(label: str, name: str, **chosen: str) -> None:
    """A link to a page that shows something else than what is chosen now; all the rest comes along.

    Args:
        label: what the person will see there.
        name: of the page's file.
        chosen: parameters of the page's address that belong to no field: a field's own value would win.
    """
    if framed():
        page = page_of(f"{name}.py")
        st.page_link(page.path, label=label, icon=page.icon, query_params=chosen)


def cards(file: str) -> None:
    """A card with a link for every page of PAGES but the one in `file`, section by section."""
    here = page_of(file)
    others = [page for pages in PAGES.values() for page in pages if page != here]
    for start in range(0, len(others), 3):
        for column, page in zip(st.columns(3), others[start : start + 3], strict=False):
            with column.container(border=True, height="stretch"):
                if framed():
                    st.page_link(page.path, label=f"**{page.title}**", icon=page.icon)
                else:
                    st.markdown(f"**{page.title}**")
                st.caption(page.summary)
