"""Which station of which lesson is open on the page Learn: from the URL, or where the visitor was last."""

import streamlit as st

from pages.lessons import LESSONS
from pages.lessons.station import Lesson

LESSON, STATION = "lesson", "station"
"""in the session and in the URL: the slugs of both"""
AT = "station-shown"
"""in the session: the station that the sidebar was last set to"""


def current_station() -> tuple[Lesson, int] | None:
    """The open lesson and the number of its station; None on the list of lessons, and where a link names no lesson."""
    asked = [st.query_params.get(name, st.session_state.get(name, "")) for name in (LESSON, STATION)]
    lesson = next((lesson for lesson in LESSONS if lesson.slug == asked[0]), None)
    if lesson is None:
        return None
    slugs = [station.slug for station in lesson.stations]
    return lesson, slugs.index(asked[1]) if asked[1] in slugs else 0


def take_place() -> None:
    """Before the sidebar is drawn: at a station reached by a link, go to its sentence and head.

    What the link itself says about them stays, so that a copied link brings back the view.
    """
    found = current_station()
    if found is None or st.session_state.get(AT) == found[0].name(found[1]):
        return
    lesson, number = found
    chosen = {k: v for k, v in lesson.stations[number].controls.items() if k not in st.query_params}
    st.session_state.update(chosen)
    _remember(lesson, number)


def open_station(lesson: Lesson, number: int) -> None:
    """Before the page runs again: go to a station, with its sentence and head."""
    st.session_state.update(lesson.stations[number].controls)
    _remember(lesson, number)


def open_list() -> None:
    """Before the page runs again: go back to the list of lessons."""
    for name in (LESSON, STATION, AT):
        st.session_state.pop(name, None)
        st.query_params.pop(name, None)


def _remember(lesson: Lesson, number: int) -> None:
    st.session_state[AT] = lesson.name(number)
    for name, slug in ((LESSON, lesson.slug), (STATION, lesson.stations[number].slug)):
        st.session_state[name] = st.query_params[name] = slug
