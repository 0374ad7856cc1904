"""A page of plain Streamlit with one Plotly chart: what any page with one has to wait for."""

import streamlit as st

st.title("One chart")
st.plotly_chart({"data": [{"type": "heatmap", "z": [[1, 2], [3, 4]]}], "layout": {}})
