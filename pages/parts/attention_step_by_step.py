"""Attention, step by step: choosing the step and the cell, and the components that draw the matrices."""

from pathlib import Path
from typing import Any

import streamlit as st

from pages.widgets.canvas import draw
from pages.widgets.controls import choice, clamp, number, select, set_controls, slider, toggle
from pages.widgets.page_links import link_with
from viz.drawing import Drawing
from viz.steps.head import PROJECTIONS, Choice, Head
from viz.steps.steps import STEPS

CELL = {"cell_query": 2, "cell_key": 1, "cell_dimension": 0, "cell_output": 0}
"""key of each widget that names the cell, and its default"""
DEFAULTS = {"step": 1} | CELL
AXES = {"query": "cell_query", "key": "cell_key", "dimension": "cell_dimension", "model": "cell_output"}
"""what a click on a matrix chooses -> key of the widget that shows it"""

PRESENT = Path(__file__).with_name("present.css")
MORE = {
    "Divide by √dₖ": ("The softmax with and without the division", "temperature", {"part": "Divided by √d_k"}),
    "Mask": ("What each mask hides, and what leaks without it", "masks", {}),
    "Softmax": ("Any temperature, live", "temperature", {}),
}
"""title of a step -> label, page and parameters of a link to more about it"""


def choose_step_of_head() -> int:
    """Draw the row of step, Back, Next and Present; returns the step, from 0. The matrices handle the arrow keys.

    In the present view a style sheet hides everything but this row, the formula and the matrices.
    """
    _from_link()
    with st.container(key="step-row", horizontal=True, vertical_alignment="center"):
        back = st.container(width="content")
        step = slider(
            "Step",
            (1, len(STEPS)),
            DEFAULTS["step"],
            "step",
            label_visibility="collapsed",
            on_change=_to_link,
            in_link=False,
        )
        _button(back, "Back", ":material/arrow_back:", step - 1)
        _button(st, "Next", ":material/arrow_forward:", step + 1)
        explained = "Formula, matrices and nothing else; ← → change the step."
        if toggle("Present", "present", width="content", help=explained):
            st.html(PRESENT)
    return step - 1


def _button(place: Any, label: str, icon: str, target: int) -> None:
    inside = 1 <= target <= len(STEPS)
    place.button(label, icon=icon, key=label, disabled=not inside, on_click=_go, args=(target,))


def explain_step_of_head(number: int, head: Head) -> None:
    """What the step does, why, and where a page shows more of it."""
    step = STEPS[number]
    with st.container(key="step-text", gap="xsmall"):
        st.markdown(f"**{number + 1}. {step.title}.** {step.text(head)}")
        st.caption(f"**Why?** {step.why(head)} (Section {step.section})")
        if step.title in MORE:
            label, page, chosen = MORE[step.title]
            link_with(label, page, **chosen)


def _go(step: int) -> None:
    set_controls({"step": min(max(step, 1), len(STEPS))})
    _to_link()


def choose_cell(head: Head, step: int) -> Choice:
    """The cell whose arithmetic is shown, chosen here or by a click on a matrix, and part of the link."""
    columns = st.columns([3, 3, 2, 2])
    query = _position(columns[0], "Query", "cell_query", head.queries.labels)
    key = _position(columns[1], "Key", "cell_key", head.keys.labels)
    size = head.d_v if step == 5 else min(head.d_k, head.d_v)
    dimension = _dimension(columns[2], "Dimension of the head", "cell_dimension", size, step in (0, 5))
    output, projection = 0, "Q"
    if step == 0:
        projection = choice("Element of", PROJECTIONS, "cell_projection", default="Q", place=columns[3], in_link=False)
    else:
        output = _dimension(columns[3], "Dimension of the output", "cell_output", head.d_model, step == 6)
    _to_link()
    return Choice(query, key, dimension, output, projection)


def _from_link() -> None:
    """On the first run take step and cell from the link, or a default cell away from the diagonal."""
    named = st.query_params.get("cell", "").split("-")
    asked = {"step": st.query_params.get("step", "")} | dict(zip(CELL, named, strict=False))
    for widget, default in DEFAULTS.items():
        if widget not in st.session_state:
            text = asked.get(widget, "")
            st.session_state[widget] = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else default
    st.session_state["step"] = min(max(st.session_state["step"], 1), len(STEPS))


def _to_link() -> None:
    """Write step and cell to the URL; also called before a rerun, so that the sidebar's link is up to date."""
    state = {widget: st.session_state.get(widget, default) for widget, default in DEFAULTS.items()}
    cell = "-".join(str(state[widget]) for widget in CELL)
    for name, value, default in (
        ("step", str(state["step"]), str(DEFAULTS["step"])),
        ("cell", cell, "-".join(map(str, CELL.values()))),
    ):
        if value != default:
            st.query_params[name] = value
        elif name in st.query_params:
            del st.query_params[name]


def _position(column: Any, label: str, key: str, labels: tuple[str, ...]) -> int:
    clamp(key, (0, len(labels) - 1))
    options = {i: f"{i} {text}" for i, text in enumerate(labels)}
    default = min(CELL[key], len(labels) - 1)
    return select(label, options, key, default=default, place=column, on_change=_to_link, in_link=False)


def _dimension(column: Any, label: str, key: str, size: int, used: bool) -> int:
    return number(
        label, (0, size - 1), CELL[key], key, place=column, disabled=not used, on_change=_to_link, in_link=False
    )


def draw_matrices(drawing: Drawing) -> Drawing:
    """Draw the equation of matrices; a click chooses a cell, the arrow keys the step."""
    return draw(
        drawing,
        "matrices",
        on_pick_change=_pick,
        on_step_change=lambda: _take_step("matrices"),
    )


def draw_arithmetic(drawing: Drawing) -> Drawing:
    """Draw the arithmetic of the chosen cell; a click on a number opens its step."""
    return draw(drawing, "arithmetic", on_step_change=lambda: _take_step("arithmetic"))


def _pick() -> None:
    picked = st.session_state["matrices"].get("pick") or {}
    chosen = {widget: int(picked[axis]) for axis, widget in AXES.items() if axis in picked}
    if (projection := str(picked.get("symbol", ""))[-1:]) in PROJECTIONS:
        chosen["cell_projection"] = projection
    set_controls(chosen)
    _to_link()


def _take_step(component: str) -> None:
    step = st.session_state[component].get("step")
    if step is not None:
        _go(int(step) + 1)
