"""A page of plain Streamlit whose slider draws nothing but a word: the least that a rerun takes, without torch."""

import time
from collections.abc import Callable

import streamlit as st


def redraw(draw: Callable[[int], object]) -> None:
    """A slider, the picture that `draw` makes of its moves, and the server's processor time so far."""
    moved = st.slider("Move", 0, 10_000, key="move")
    with st.container(key="picture"):
        draw(moved)
    st.text(f"{time.process_time()} s after {moved} moves")


def draw_nothing(moved: int) -> None:
    """What changes with every move."""
    st.text(f"moved {moved}")


if __name__ == "__main__":
    st.set_page_config(layout="wide")
    st.fragment(redraw)(draw_nothing)
