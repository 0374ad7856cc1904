"""A page of plain Streamlit whose slider changes four Plotly charts: what any page with several has to wait for."""

import streamlit as st

from tests.bench.empty import redraw

CHARTS, TOKENS = 4, 20


def draw_charts(moved: int) -> None:
    """Heat maps whose every number changes with every move."""
    for number in range(CHARTS):
        cells = [[(moved + number + 3 * i + 7 * j) % TOKENS for j in range(TOKENS)] for i in range(TOKENS)]
        st.plotly_chart({"data": [{"type": "heatmap", "z": cells}], "layout": {}}, key=str(number))


if __name__ == "__main__":
    redraw(draw_charts)
