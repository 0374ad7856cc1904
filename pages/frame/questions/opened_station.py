"""Which station of which lesson is open on the page Learn, and the person's own sentence, which its own replaces."""

from collections.abc import Sequence

import streamlit as st

from model.language import tr
from pages.lessons import lessons
from pages.lessons.station import Lesson, Station
from pages.widgets.changes import FOLLOWED, TEMPERATURES
from pages.widgets.controls import DEFAULTS, keep_token, reset_controls
from viz.tokens import as_markdown

LESSON, STATION = "lesson", "station"
"""in the session and in the URL: the slugs of both"""
AT = "station-shown"
"""in the session: the station that the sidebar was last set to"""
OWN = "before-lessons"
"""in the session: sentence, head, temperature and model as they were before a station replaced them, by control"""
LONGEST_HELP = 120
"""characters of the sentence in a tooltip"""


def current_station() -> tuple[Lesson, int] | None:
    """The open lesson and the number of its station; None on the list of lessons, and where a link names no lesson."""
    asked = [st.query_params.get(name, st.session_state.get(name, "")) for name in (LESSON, STATION)]
    lesson = next((lesson for lesson in lessons() if lesson.slug == asked[0]), None)
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
    controls = found[0].stations[found[1]].controls
    open_station(*found, {key for key in controls if key in st.query_params and key not in st.session_state})


def open_list() -> None:
    """Before the page runs again: go back to the list of lessons."""
    for name in (LESSON, STATION, AT):
        st.session_state.pop(name, None)
        st.query_params.pop(name, None)


def open_station(lesson: Lesson, number: int, stay: set[str] = frozenset()) -> None:
    """Before the page runs again: go to a station, with its sentence and head, but for controls whose keys `stay`."""
    state, station = st.session_state, lesson.stations[number]
    _keep_own(station)
    if "source" not in stay:
        keep_token(station.source)
    state.update({key: value for key, value in station.controls.items() if key not in stay})
    state[FOLLOWED] = None
    if TEMPERATURES not in st.query_params or state.get(TEMPERATURES):
        state[TEMPERATURES] = ()
    state[AT] = lesson.name(number)
    for name, slug in ((LESSON, lesson.slug), (STATION, station.slug)):
        state[name] = st.query_params[name] = slug


def _keep_own(station: Station) -> None:
    """Before a station's sentence comes: keep the person's, unless one was kept, and what came since is a station's."""
    state = st.session_state
    if "source" in state and (OWN not in state or (AT not in state and not _is_a_stations())):
        keys = (station.controls.keys() - station.chosen.keys()) | {"tau", TEMPERATURES, FOLLOWED}
        state[OWN] = {key: state[key] for key in keys if key in state}


def _is_a_stations() -> bool:
    """Whether the sentence on screen is that of some station."""
    return any(st.session_state["source"] == one.source for lesson in lessons() for one in lesson.stations)


def notice_own_sentence() -> None:
    """On another page: a sentence that the person typed there is theirs, and the open station keeps it for them."""
    state = st.session_state
    first = state.get(DEFAULTS, {}).get("source")  # the sentence that a reset brings
    if OWN in state and "source" in state and not _is_a_stations() and state["source"] != first:
        for name in (OWN, AT):
            state.pop(name, None)


def offer_own_sentence(key: str) -> None:
    """A button that brings back the person's sentence, head, temperature and model; none where they are there.

    Each part of the page calls it by another key.
    """
    own = st.session_state.get(OWN)
    if own and any(st.session_state.get(key) != value for key, value in own.items()):
        st.button(
            tr("Back to my sentence"),
            key=key,
            icon=":material/undo:",
            type="tertiary",
            help=as_markdown(own.get("source", "")[:LONGEST_HELP]),
            on_click=_give_back,
        )


def reset(keep: Sequence[str]) -> None:
    """Before the page runs again: all controls as at first, but for those that `reset_controls` keeps; the button that
    brings back a sentence brings them back."""
    state = st.session_state
    own = {key: state[key] for key in (*state.get(DEFAULTS, ()), TEMPERATURES, FOLLOWED) if key in state}
    reset_controls(keep)
    state[OWN] = own


def _give_back() -> None:
    """Before the page runs again: the person's own sentence and head are back, and no station is open."""
    st.session_state.update(st.session_state.pop(OWN, {}))
    open_list()
