"""Home: a sentence, its translation, and where the model looked."""

import streamlit as st

from pages.components.frame import open_page
from pages.components.proof import proof_strip

view = open_page(__file__)
st.text(view.trace.translation)
proof_strip(view)
