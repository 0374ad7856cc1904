"""The two boxes that explain a figure: the formula with its section of the paper, and the code."""

import inspect
from collections.abc import Callable, Sequence
from functools import cache

import streamlit as st

from pages.widgets.controls import box

PAPER = "https://arxiv.org/abs/1706.03762"
"""for a person to click; the app itself never asks for it"""


def explain(text: str, latex: str | None = None, section: str | None = None) -> None:
    """A formula and its explanation.

    Args:
        text: Markdown written by us, never a token or typed text.
        latex: the formula, without dollar signs.
        section: where in the paper, such as "3.2.1".
    """
    with st.container(border=True):
        if latex:
            st.latex(latex if r"\begin{aligned}" in latex else breakable(latex))
        st.markdown(text)
        if section:
            st.caption(f"Vaswani et al. 2017, [“Attention Is All You Need”]({PAPER}), section {section}")


def breakable(latex: str) -> str:
    """Equations that on a narrow screen stand below each other, none of them broken; `\\qquad` separates them."""
    equations = latex.split(r"\qquad")
    return latex if len(equations) == 1 else r"\qquad \allowbreak ".join(f"{{{equation}}}" for equation in equations)


def draw_code(*objects: Callable | type) -> None:
    """The lines of `model/` that computed what is shown, read from the running program."""
    _draw_code(objects)


def show_code(*objects: Callable | type) -> None:
    """The lines of `model/` that computed what is shown, read from the running program."""
    box("Show the code", f"code-{objects[0].__qualname__}", _draw_code, objects, icon=":material/code:")


def _draw_code(objects: Sequence[Callable | type]) -> None:
    for item in objects:
        lines, first = _lines(item)
        st.caption(f"{item.__module__.replace('.', '/')}.py, line {first}")
        st.code("".join(lines), language="python")


@cache
def _lines(item: Callable | type) -> tuple[list[str], int]:
    """Its lines and the number of the first one; finding them takes milliseconds, so they are cached."""
    return inspect.getsourcelines(item)
