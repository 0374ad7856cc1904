"""The row above a picture that fills the screen: where one is, the way on, and the way out."""

from collections.abc import Callable, Sequence
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.language import tr
from pages import Page
from pages.views.attention.attention_step_by_step import STEP
from pages.widgets.canvas import component
from pages.widgets.controls import set_controls
from pages.widgets.present import FIT, screen_factor, stop_presenting

STYLE = Path(__file__).with_name("style") / "present.css"


def place_present_row() -> DeltaGenerator:
    """The row, still empty, and the style sheet by which only it, the words and the picture are left of the page."""
    row = st.container(key="present-row", horizontal=True, vertical_alignment="center")
    # Streamlit moves a style that stands alone out of its place, and removes it only when the next run ends. Beside an
    # element it is removed with the row.
    row.html(f"<i></i><style>{STYLE.read_text(encoding='utf-8')}</style>")
    return row


def show_present_row(page: Page, tabs: Sequence[str]) -> None:
    """Draw the row; the arrow keys go through the steps of a head, or through the tabs of the page, by their titles."""
    state = st.session_state
    if page.name == "attention_step_by_step":
        key, places, names = STEP.key, list(range(STEP.limits[0], STEP.limits[1] + 1)), []
        asked = state.get(key, st.query_params.get(key, STEP.start))
        at = int(asked) if str(asked).isdigit() else STEP.start
    else:
        key, places = page.tabs_key, [tr(title) for title in tabs]
        names, at = places, state.get(key) or st.query_params.get(key) or tr(page.first_tab)
    number = places.index(at) if at in places else 0
    draw_present_row(
        [tr(page.title), *names[number:][:1]], number, len(places), lambda at: set_controls({key: places[at]})
    )


def draw_present_row(names: Sequence[str], number: int, count: int, go: Callable[[int], object]) -> None:
    """Draw the row, with the names of the page and of what is open on it, which is the one of this number, from 0, of
    `count`.

    `go` opens another one, by its number, before the page runs again.
    """
    data = {"names": list(names), "by": screen_factor()}
    component("present")(key=FIT, data=data, width="stretch", height="content", on_by_change=lambda: None)
    if count > 1:
        for name, label, icon, there, shortcut in (
            ("Back", tr("Back"), "arrow_back", number - 1, "Left"),
            ("Next", tr("Next"), "arrow_forward", number + 1, "Right"),
        ):
            options = {"disabled": not 0 <= there < count, "on_click": go, "args": (there,), "shortcut": shortcut}
            st.button(label, key=f"present-{name}", icon=f":material/{icon}:", **options)
        st.markdown(tr("{number} of {count}", number=number + 1, count=count))
    st.button(tr("Leave"), key="present-leave", icon=":material/close:", on_click=stop_presenting, shortcut="Esc")
