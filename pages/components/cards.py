"""Ways to other pages: the home page's cards, one for every other page, and single links."""

from collections.abc import Callable

import streamlit as st

from pages import PAGES
from pages.components.frame import page_of
from pages.components.inputs import framed
from pages.components.menu import go_to


def links(**labels: str) -> None:
    """A link to each of these pages, by the name of its file; everything chosen in the sidebar comes along."""
    if framed():
        for name, label in labels.items():
            page = page_of(f"{name}.py")
            st.page_link(page.path, label=label, icon=page.icon)


def way(label: str, name: str, key: str, prepare: Callable[..., None], *args: object) -> None:
    """A button that first makes a choice, and then opens a page that shows it.

    Args:
        label: what the person will see there.
        name: of the page's file.
        key: unique in the app.
        prepare: makes the choice in the session, with `args`.
    """
    if framed():
        page = page_of(f"{name}.py")
        st.button(label, key=key, icon=page.icon, on_click=_set_out, args=(page.path, prepare, *args))


def _set_out(path: str, prepare: Callable[..., None], *args: object) -> None:
    prepare(*args)
    go_to(path)


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
