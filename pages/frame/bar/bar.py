"""The bar above every page: search, share, export, present, light or dark; on a narrow screen the menu at its foot."""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.checkpoints.translator import Translator
from model.language import in_this_language, tr
from model.run import Place, Request
from model.trace import Trace
from pages import PAGES, Page
from pages.frame.bar.search import WORD, Act, Token, find, keep_word, show_hits, tokens_of
from pages.frame.bar.share import share
from pages.frame.questions.guess_first import turn_guessing
from pages.frame.sidebar.sidebar import KEPT_AT_RESET
from pages.widgets.canvas import component
from pages.widgets.chart import is_narrow
from pages.widgets.controls import reset_controls
from pages.widgets.page_links import linked_pages, links
from pages.widgets.present import start_presenting

NARROW = Path(__file__).parents[1] / "style/narrow.css"
"""style sheet of narrow screens"""
OPENS = "bar-opens"
"""in the session: the dialog that an action of the search asks for"""
TURNS = "scheme-turns"
"""in the session: how often an action of the search has asked for the other of light and dark"""
TOKENS = "search-tokens"
"""in the session: the tokens of the last run"""
FOOT = {
    "Explore": ("explore", ("Explore",)),
    "Attention": ("grid_on", ("Attention",)),
    "Model": ("account_tree", ("Model", "Experiment")),
    "Learn": ("school", ("Learn", "Beyond")),
}
"""label of an entry at the foot of a narrow screen -> its symbol, and the sections of the menu that it opens"""
_export: ContextVar[DeltaGenerator | None] = ContextVar("export", default=None)


def show_bar(page: Page, translator: Translator | None, request: Request, place: Place) -> None:
    """Draw the bar; a view in a page of somebody else's stands alone.

    `translator` is None if the checkpoint could not be opened, and `request` that of the texts as typed.
    """
    _export.set(None)
    if st.context.is_embedded:
        return
    st.html(NARROW)
    with st.container(key="bar", horizontal=True, vertical_alignment="center", gap="small"):
        if _dialog_button(
            "Search", "bar-search", "search", tr("Pages, words, tokens, heads"), shortcut="Mod+K", on_click=keep_word
        ):
            _search = in_this_language(_show_search)
            st.dialog(tr("Search"), width="medium")(_search)(translator, linked_pages.get())
        if _dialog_button("Share", "bar-share", "share", tr("Link, QR code, code for a page of your own, course")):
            st.dialog(tr("Share"))(in_this_language(share))(page, translator, request, place)
        _export.set(st.container(width="content", key="bar-export-place"))
        said = tr("The picture alone, for a projector")
        icon = ":material/present_to_all:"
        st.button(tr("Present"), key="bar-present", icon=icon, help=said, on_click=start_presenting)
        component("scheme")(
            key="bar-scheme", data={"turns": st.session_state.get(TURNS, 0)}, width="content", height="content"
        )
    # The same place with and without it: what follows on the page is not drawn anew.
    with st.container(key="foot-place"):
        if linked_pages.get() and is_narrow():
            st.fragment(in_this_language(_show_foot_menu))(page, linked_pages.get())


def _show_foot_menu(here: Page, pages: Mapping[str, "st.Page"]) -> None:
    """The menu within reach of a thumb; the style sheet shows it on narrow screens, with the search at its end."""
    # Opening an entry runs this without the rest of the page. Each page has entries of its own, closed at first; none
    # sends its links unasked.
    linked_pages.set(pages)
    with st.container(key="foot-menu", horizontal=True, gap=None):
        for label, (icon, sections) in FOOT.items():
            mark = "-here" if any(here in PAGES[section] for section in sections) else ""
            name, look = f"foot-{here.name}-{label}{mark}", {"icon": f":material/{icon}:", "width": "stretch"}
            entry = st.popover(tr(label), key=name, on_change="rerun", **look)
            if entry.open:
                with entry:
                    _link_sections(sections)


def _link_sections(sections: Sequence[str]) -> None:
    for section in sections:
        if len(sections) > 1:
            st.caption(tr(section))
        links(**{page.name: tr(page.title) for page in PAGES[section]})


def note_tokens(trace: Trace, kind: str) -> None:
    """Let the search know the tokens of this run."""
    st.session_state[TOKENS] = tokens_of(trace, kind)


def offer_export(draw: Callable[[], Any], on_open: Callable[[], Any]) -> None:
    """Put the button in the bar that opens the export of what is on screen; `on_open` is called before the page runs
    again."""
    place = _export.get()
    if place is None:
        return
    with place:
        if _dialog_button("Export", "bar-export", "download", tr("Pictures, numbers, Python"), on_click=on_open):
            st.dialog(tr("Export"), width="large")(in_this_language(draw))()


def _dialog_button(label: str, key: str, icon: str, explained: str, **options: Any) -> bool:
    """Whether its dialog, named in English, opens, by a press or by an action of the search."""
    pressed = st.button(tr(label), key=key, icon=f":material/{icon}:", help=explained, **options)
    asked = st.session_state.get(OPENS) == label
    if asked:
        del st.session_state[OPENS]
    return pressed or asked


def _show_search(translator: Translator | None, pages: Mapping[str, "st.Page"]) -> None:
    # While somebody types, this runs without the rest of the page.
    linked_pages.set(pages)
    word = st.text_input(
        tr("What are you looking for?"),
        key=WORD,
        type="search",
        live=True,
        placeholder=tr("softmax, it, L1H1, export …"),
        icon=":material/search:",
    )
    features = translator.features if translator else frozenset()
    tokens: Sequence[Token] = st.session_state.get(TOKENS, ())
    kinds = translator.kinds if translator else ()
    found = find(word, features=features, tokens=tokens, kinds=kinds, actions=tuple(_actions()))
    show_hits(word, found, _actions())


def _actions() -> Mapping[Act, Callable[[], Any]]:
    """What can be done on every page, by name, with other words for it."""
    return {
        Act(
            tr("Present this page"), "present_to_all", tr("full screen projector slides beamer talk")
        ): start_presenting,
        Act(tr("Share this view"), "share", tr("link qr code embed iframe course copy address")): partial(
            _open, "Share"
        ),
        Act(
            tr("Export what is on screen"), "download", tr("save download png svg pdf csv numpy python figure")
        ): partial(_open, "Export"),
        Act(tr("Reset every page"), "restart_alt", tr("start again clear default undo")): partial(
            reset_controls, KEPT_AT_RESET
        ),
        Act(tr("Light or dark"), "contrast", tr("theme scheme colour color night mode")): _turn_scheme,
        Act(tr("Guess first"), "quiz", tr("question quiz predict")): turn_guessing,
    }


def _turn_scheme() -> None:
    st.session_state[TURNS] = st.session_state.get(TURNS, 0) + 1


def _open(label: str) -> None:
    st.session_state[OPENS] = label
