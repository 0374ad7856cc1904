"""What explains a picture: formulas that fit a narrow screen, words, and the code."""

import inspect
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import streamlit as st

from model.language import tr
from pages.views.words import blocks_of
from pages.widgets.glossary import define


def breakable(latex: str) -> str:
    """Equations that on a narrow screen stand below each other, none of them broken; `\\qquad` separates them."""
    equations = latex.split(r"\qquad")
    return latex if len(equations) == 1 else r"\qquad \allowbreak ".join(f"{{{equation}}}" for equation in equations)


def say(page: str, section: str, **facts: Any) -> None:
    """Draw a section of pages/text/PAGE.md that is no view's: texts, captions, notes and formulas."""
    info = partial(st.info, icon=":material/info:")
    draw = {"text": st.markdown, "caption": st.caption, "formula": st.latex}
    for block in blocks_of(page, section, facts):
        helped = {"help": define(*block.terms)} if block.terms else {}
        draw.get(block.kind, info)(block.text, **helped)


def draw_code(*objects: Callable | type) -> None:
    """The lines of `model/` that computed what is shown, read from the running program."""
    for item in objects:
        lines, first = _lines(item)
        st.caption(tr("{file}, line {line}", file=f"{item.__module__.replace('.', '/')}.py", line=str(first)))
        st.code("".join(lines), language="python")


@cache
def _lines(item: Callable | type) -> tuple[list[str], int]:
    """Its lines and the number of the first one; finding them takes milliseconds, so they are cached."""
    return inspect.getsourcelines(item)
