"""Glossary: the words of this field in plain English, and questions about them, each with a link to see it live."""

import streamlit as st

from pages.frame.open_page import open_page
from pages.widgets.controls import tabs, text
from pages.widgets.glossary import find_terms, link_to, questions, show_term, terms
from pages.widgets.proof_strip import proof_strip


def show_terms() -> None:
    """The terms in which the typed word occurs."""
    word = text("Find a word", "word", placeholder="softmax, KV cache, LSTM …", width=400)
    found = find_terms(word)
    st.caption(f"{len(found)} of {len(terms())} terms")
    if not found:
        st.text(f"No term has “{word[:100]}” in its names or its explanation. Try a shorter word, or clear the field.")
    for term in found:
        with st.container(border=True, gap="xsmall"):
            show_term(term, with_formula=True)


def show_questions() -> None:
    """Each question with an answer to open, and the place where the answer can be seen."""
    st.caption("Answer first, aloud or on paper; then open the answer, and see it on your sentence.")
    for question in questions():
        with st.expander(question.ask):
            st.markdown(question.answer)
            link_to(question)


view = open_page(__file__)
tabs({"Terms": show_terms, "Interview questions": show_questions}, "glossary")
proof_strip(view)
