"""The words of this field, explained in tooltips and below the sidebar's search."""

import streamlit as st

from pages.views.glossary import Term, terms
from pages.widgets.page_links import link_with


def show_term(term: Term) -> None:
    """What the term means, and a link to where it is live."""
    others = f" · also: {', '.join(term.others)}" if term.others else ""
    st.markdown(f"**{term.name}**{others}\n\n{term.text}")
    link_with(term.place, term.page, **term.query)


def define(*words: str) -> str:
    """A tooltip that explains these terms."""
    texts = {term.name: term.text for term in terms()}
    if len(words) == 1:
        return texts[words[0]]
    return "  \n".join(f"**{word.capitalize()}**: {texts[word]}" for word in words)
