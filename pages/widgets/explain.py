"""What explains a picture: formulas that fit a narrow screen, and the code."""

import inspect
from collections.abc import Callable
from functools import cache

import streamlit as st


def breakable(latex: str) -> str:
    """Equations that on a narrow screen stand below each other, none of them broken; `\\qquad` separates them."""
    equations = latex.split(r"\qquad")
    return latex if len(equations) == 1 else r"\qquad \allowbreak ".join(f"{{{equation}}}" for equation in equations)


def draw_code(*objects: Callable | type) -> None:
    """The lines of `model/` that computed what is shown, read from the running program."""
    for item in objects:
        lines, first = _lines(item)
        st.caption(f"{item.__module__.replace('.', '/')}.py, line {first}")
        st.code("".join(lines), language="python")


@cache
def _lines(item: Callable | type) -> tuple[list[str], int]:
    """Its lines and the number of the first one; finding them takes milliseconds, so they are cached."""
    return inspect.getsourcelines(item)
