"""Glossary: the words of this field in plain English, with their formulas, and a link to where each is live."""

import streamlit as st

from pages.frame.open_page import open_page
from pages.widgets.controls import text
from pages.widgets.glossary import find_terms, show_term, terms
from pages.widgets.proof_strip import proof_strip

view = open_page(__file__)
word = text("Find a word", "word", placeholder="softmax, KV cache, LSTM …", width=400)
found = find_terms(word)
st.caption(f"{len(found)} of {len(terms())} terms")
if not found:
    st.text(f"No term has “{word[:100]}” in its names or its explanation. Try a shorter word, or clear the field.")
for term in found:
    with st.container(border=True, gap="xsmall"):
        show_term(term, with_formula=True)
proof_strip(view)
