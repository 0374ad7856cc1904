"""The home page's cards: one for every other page."""

import streamlit as st

from pages import PAGES
from pages.components.frame import page_of
from pages.components.inputs import framed


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
