"""Links to other pages: single ones, and the home page's cards."""

from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType

import streamlit as st

from model.language import in_this_language, tr
from model.needs import Need
from pages import EVERY, PAGES, Page, page_of
from pages.compute.runs import checkpoint_by_config
from pages.widgets.canvas import component
from pages.widgets.controls import OPEN_TAB
from viz.tokens import as_markdown

OPENS = "opens"
"""in the session the page that a picture has asked for; the key of the link to it, which the picture follows"""
linked_pages: ContextVar[Mapping[str, "st.Page"]] = ContextVar("linked_pages", default=MappingProxyType({}))
"""path of a page's file -> its entry in the menu; empty where the page runs without app.py, which has the menu"""


def links(**labels: str) -> None:
    """A link to each of these pages, given by the name of its file; the sidebar's choices are kept."""
    if linked_pages.get():
        for name, label in labels.items():
            page = page_of(name)
            st.page_link(linked_pages.get()[page.path], label=label, icon=page.icon)


def link_with(label: str, name: str, **chosen: str) -> None:
    """A link to a page with other parameters than the present ones; the sidebar's other choices are kept.

    The parameters belong to no control, whose own value would take precedence. A tab is named in English, or as it is
    called on screen.
    """
    if linked_pages.get():
        page = page_of(name)
        # Streamlit drops a parameter of the page that is left, and several pages call that of their tabs alike.
        chosen = {OPEN_TAB if key == page.tabs_key else key: value for key, value in chosen.items()}
        if OPEN_TAB in chosen:
            chosen[OPEN_TAB] = tr(chosen[OPEN_TAB])
        st.page_link(linked_pages.get()[page.path], label=label, icon=page.icon, query_params=chosen)


def ask_for_page(name: str | None) -> None:
    """Let the next run draw the link to the page that a picture asks for, if there is one of this name."""
    if name in {page.name for page in EVERY}:
        st.session_state[OPENS] = name


def link_asked_page() -> None:
    """A link to the page that a picture has asked for, which its script follows.

    Streamlit switches pages in Python only where no control is in the link.
    """
    if page := st.session_state.pop(OPENS, ""):
        with st.container(key=OPENS):
            links(**{page: tr("Opening …")})


def cards(file: str) -> None:
    """A card for every page of PAGES but the one in `file`, section by section; all of it is the link."""
    here = page_of(file)
    sections = {section: [page for page in pages if page != here] for section, pages in PAGES.items()}
    data = [{"title": tr(section), "pages": [*map(_card, pages)]} for section, pages in sections.items()]
    st.fragment(in_this_language(_draw_cards))(data, linked_pages.get())


def _card(page: Page) -> dict[str, str]:
    icon = page.icon.removeprefix(":material/").removesuffix(":")
    return {"name": page.name, "title": tr(page.title), "summary": tr(page.summary), "icon": icon}


def _draw_cards(sections: list[dict], pages: Mapping[str, "st.Page"]) -> None:
    """Run by itself, without the rest of the page, after a click on a card."""
    linked_pages.set(pages)
    open_chosen = {"on_open_change": lambda: ask_for_page(st.session_state["cards"].get("open"))}
    component("cards")(key="cards", data={"sections": sections}, **open_chosen)
    link_asked_page()


def offer_checkpoint(*needs: Need, tab: Mapping[str, str] = MappingProxyType({}), of: str = "") -> None:
    """A button that opens a checkpoint with all that the opened model lacks, on the same page; a sentence if there is
    none.

    `tab` has the key of the page's tabs and the one to open; without it the open one stays open. Where several things
    on a page ask, `of` tells them apart.
    """
    name = checkpoint_by_config(needs)
    if name is None:
        st.caption(tr("The checkpoints folder has no checkpoint with this part."))
        return
    chosen = {"checkpoint": name, **tab}
    st.button(
        tr("Open {name}, which has it", name=as_markdown(name)),
        key="-".join(["open-with", *filter(None, [*tab.values(), of])]),
        icon=":material/swap_horiz:",
        on_click=lambda: st.session_state.update(chosen),
    )


def say_where_parts_went(_: object) -> None:
    """On Training: a sentence and a link, where an older link asks for a tab that is now on another page."""
    if st.query_params.get("training") == "Parts since 2017":
        tab = "What each part buys"
        said = tr("“Parts since 2017” is now the tab “{tab}” of the page {page}.", tab=tr(tab), page=tr("Since 2017"))
        st.info(said, icon=":material/info:")
        link_with(tr("Open “{tab}”", tab=tr(tab)), "since_2017", since=tab)
