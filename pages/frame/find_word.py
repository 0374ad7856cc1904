"""The sidebar's search: a word of the field, explained, with a link to where it is live."""

import streamlit as st

from pages.views.glossary import terms
from pages.widgets.controls import register
from pages.widgets.glossary import show_term


def find_word() -> None:
    """A menu of all terms under all their names; the chosen one is explained below it."""
    register("find_word", None)
    by_name = {name: term for term in terms() for name in term.names}
    chosen = st.selectbox(
        "Find a word",
        sorted(by_name, key=str.casefold),
        index=None,
        placeholder="Find a word …",
        label_visibility="collapsed",
        key="find_word",
    )
    if term := by_name.get(chosen):
        with st.container(border=True):
            show_term(term)
