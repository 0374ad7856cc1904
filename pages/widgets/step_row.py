"""The row of Attention, step by step: Back, the step and Next.

Written by hand: it stays in view while the page scrolls, and its buttons move the slider that stands between them.
"""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from model.language import tr
from model.run import Run
from pages.views import Control, Offer
from pages.views.attention.attention_step_by_step import DIMENSION, KEY, OUTPUT, PRESENT, QUERY, STEP
from pages.widgets.controls import set_controls, slider
from pages.widgets.present import presents

LONGEST_NUMBER = 5
"""digits of a position that a link may name"""


def choose_step(_run: Run) -> Mapping[Control, Any]:
    """Draw the row; the matrices handle the arrow keys."""
    _read_older_link()
    with st.container(key="step-row", horizontal=True, vertical_alignment="center"):
        back = st.container(width="content")
        step = slider(Offer(STEP.label, None, STEP.start, STEP.limits), STEP.key, label_visibility="collapsed")
        _button(back, tr("Back"), ":material/arrow_back:", step - 1, "step-back")
        _button(st, tr("Next"), ":material/arrow_forward:", step + 1, "step-next")
    return {STEP: step, PRESENT: presents()}


def _button(place: Any, label: str, icon: str, step: int, key: str) -> None:
    first, last = STEP.limits
    inside = first <= step <= last
    place.button(label, icon=icon, key=key, disabled=not inside, on_click=set_controls, args=({STEP.key: step},))


def _read_older_link() -> None:
    """Set the cell's controls from `cell=query-key-dimension-output`, as links had it once."""
    numbers = QUERY, KEY, DIMENSION, OUTPUT
    for control, text in zip(numbers, st.query_params.pop("cell", "").split("-"), strict=False):
        if text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER:
            st.session_state.setdefault(control.key, int(text))
