"""The words of this field, explained in tooltips and below the sidebar's search."""

import streamlit as st

from model.language import tr
from pages.views.learn.glossary import Term, terms
from pages.widgets.page_links import link_with


def show_term(term: Term) -> None:
    """What the term means, and a link to where it is live."""
    others = f" · {tr('also')}: {', '.join(term.others)}" if term.others else ""
    st.markdown(f"**{term.name}**{others}\n\n{term.text}")
    link_with(term.place, term.page, **term.to)


def define(*words: str) -> str:
    """A tooltip that explains these terms, given by their English names."""
    known = {term.key: term for term in terms()}
    if len(words) == 1:
        return known[words[0]].text
    return "  \n".join(f"**{known[word].name.capitalize()}**: {known[word].text}" for word in words)
