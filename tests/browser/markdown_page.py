"""A page of texts in every element of Streamlit that reads Markdown; tests/browser/test_injection.py opens it."""

import streamlit as st

from tests.injection import LITERAL
from viz.tokens import as_markdown

for number, text in enumerate(LITERAL):
    shown = as_markdown(text)
    with st.container(key=f"text-{number}"):
        st.markdown(shown)
        st.markdown(f"**Bold** “{shown}”, :red[{shown}]")
        st.markdown(f"| a | b |\n|---|---|\n| {shown} | 1 |")
        st.markdown(f"- one\n- {shown}")
        st.caption(shown)
        st.info(shown)
        st.button(shown)
        st.link_button(shown, "/")
        st.pills("Pills", [1], format_func=lambda _, shown=shown: shown, key=f"pills-{number}")
        st.segmented_control("Segments", [1], format_func=lambda _, shown=shown: shown, key=f"segments-{number}")
        st.radio("Radio", [1], format_func=lambda _, shown=shown: shown, key=f"radio-{number}")
        st.metric(shown, 1)
        st.expander(shown)
        st.tabs([shown])
st.text("The picture is the model")
