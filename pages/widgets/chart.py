"""Plotly figures on a page, and the names of their files."""

import re
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import streamlit as st

from model.checkpoints.store import shown_name
from pages.widgets.present import presents
from viz.figure import StableFigure, darken, selectable
from viz.stack import MOST_ON_PHONE, MOST_TITLE, fold_titles, stack, thin

HERE = "here"
"""key of the component that knows the browser's window"""


def run_in_file_names(checkpoint: str, weights: str) -> str:
    """The checkpoint as visitors see it, with letters, digits, dots and hyphens alone, and the hash of its weights."""
    return f"{checkpoint_in_file_names(checkpoint)}-{weights[:8]}"


def checkpoint_in_file_names(checkpoint: str) -> str:
    """The checkpoint as visitors see it, with letters, digits, dots and hyphens alone."""
    return re.sub(r"[^\w.-]+", "-", shown_name(checkpoint))


def is_narrow() -> bool:
    """Whether the window is so narrow that panels stand below each other; a first run does not know it yet."""
    return bool((st.session_state.get(HERE) or {}).get("narrow"))


def is_dark() -> bool:
    """Whether the window is dark; of a first run Streamlit may not know it yet, and the next one follows at once."""
    told = (st.session_state.get(HERE) or {}).get("dark")
    return st.context.theme.type == "dark" if told is None else bool(told)


def clicked_point(key: str) -> dict[str, Any] | None:
    """The point of the chart `key` that was clicked, with its point_index and customdata; None if none is selected."""
    points = st.session_state[key]["selection"]["points"]
    return points[0] if points else None


def chart(
    figure: Any, key: str, *, alt: str, on_select: str | Callable[[], None] = "ignore", roomy: bool = False
) -> Any:
    """Draw a Plotly figure over the full width; the style sheet adapts it to the person's theme. `alt` is for screen
    readers.

    `on_select` is called before a click on a point runs the page again, with the selection in st.session_state[key].
    `roomy`: it is several maps side by side, which on a phone stand below each other.
    """
    config = {
        "displaylogo": False,
        # Autoscaling would flip an axis that has a range of its own.
        "modeBarButtonsToRemove": ["lasso2d", "select2d", "autoScale2d"],
        "doubleClick": "reset",
    }
    if is_dark() and isinstance(figure, StableFigure):
        figure = darken(figure)
    if is_narrow() and not presents():
        figure, roomy = thin(stack(figure) if roomy else figure), False
    if isinstance(figure, StableFigure) and not presents():
        figure = fold_titles(figure, MOST_ON_PHONE if is_narrow() else MOST_TITLE)
    if on_select != "ignore":
        figure = selectable(figure)
    shown = {"key": key, "theme": None, "config": config, "alt": alt}
    if presents():
        shown["height"] = "stretch"
    with st.container(key=f"roomy-{key}") if roomy else nullcontext():
        return st.plotly_chart(figure, **shown, on_select=on_select, selection_mode="points")
