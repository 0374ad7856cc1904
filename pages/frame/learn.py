"""Learn: the list of lessons, and a station with its question and its picture, a view of any page."""

import streamlit as st

from model.run import Run
from pages.frame.render import show_view
from pages.frame.stations import offer_own_sentence, open_list, open_station
from pages.lessons import lessons
from pages.lessons.question import view_named
from pages.lessons.station import Lesson, Station
from pages.views.learn import head
from pages.widgets.canvas import component
from pages.widgets.controls import fold
from pages.widgets.export import export_view
from pages.widgets.page_links import link_with
from pages.widgets.proof_strip import proof
from pages.widgets.question import Card, show_question

DONE = "stations-done"
"""in the session: names of the finished stations"""
TICKS = "ticks"
"""key of the component that keeps the finished stations in the browser"""


def show_lessons() -> None:
    """A card for each lesson, with the stations that are done."""
    done = _finished()
    offer_own_sentence("learn")
    for start in range(0, len(lessons()), 2):
        for column, lesson in zip(st.columns(2), lessons()[start : start + 2], strict=False):
            with column.container(border=True, height="stretch"):
                _show_card(lesson, done)


def show_foot(run: Run) -> None:
    """One line at the end: the proof, and the numbers of the chosen head."""
    export = ":material/download: Export", lambda: export_view(head(run), ())
    fold({"checks": proof(run), "export": export}, "foot-learn", "About this page")


def _show_card(lesson: Lesson, done: frozenset[str]) -> None:
    count = len(lesson.stations)
    ticked = [lesson.name(i) in done for i in range(count)]
    st.markdown(f"**{_title(lesson)}**")
    st.markdown(lesson.about)
    with st.container(horizontal=True, vertical_alignment="center"):
        first = ticked.index(False) if not all(ticked) else 0
        label = "Again" if all(ticked) else "Continue" if any(ticked) else "Start"
        st.button(label, key=f"lesson-{lesson.slug}", on_click=open_station, args=(lesson, first))
        st.caption(f"{sum(ticked)} of {count} stations done · about {lesson.minutes} minutes", width="content")


def _title(lesson: Lesson) -> str:
    return f"{lessons().index(lesson) + 1}. {lesson.title}"


def show_station(run: Run, lesson: Lesson, number: int) -> None:
    """What to do and to look for, the question with its ladder of hints, and the picture beside them.

    Args:
        run: what is on the page.
        lesson: the open one.
        number: of its station.
    """
    station, name = lesson.stations[number], lesson.name(number)
    _show_way(lesson, number, _finished(name))
    left, right = st.columns([1, 1] if station.wide else [2, 3], gap="large")
    with left:
        st.subheader(station.title, anchor=False)
        _offer_return(run, lesson, number)
        st.markdown(f"**Do.** {station.do}")
        st.markdown(f"**Look for.** {station.look_for}")
    with right if station.wide else left:
        if station.fits(run):
            with st.container(border=True):
                ask = f"**Why?** {station.question.ask}"
                show_question(Card(name, ask, lambda: _answer(run, station), station.question.hints))
        link_with(station.further, station.page, **station.tab)
    with st.container() if station.wide else right, st.container(key="learn-live"):
        if not station.fits(run):
            st.info(f"This station needs the checkpoint {station.checkpoint}.", icon=":material/info:")
        else:
            view = view_named(station.live)
            given = {view.controls[control]: value for control, value in station.given.items()}
            show_view(run, view, station.only, given)


def _answer(run: Run, station: Station) -> str:
    answer = station.answer(run)
    if answer.holds:
        return answer.text
    note = "This run does not show the effect. Go back to this station's sentence and head to see it."
    return f"{answer.text}\n\n:small[{note}]"


def _show_way(lesson: Lesson, number: int, done: frozenset[str]) -> None:
    """Lesson, its stations as buttons, Back and Next."""
    last = len(lesson.stations) - 1
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="lesson-way"):
        st.button("All lessons", key="lessons", icon=":material/list:", type="tertiary", on_click=open_list)
        offer_own_sentence("learn")
        st.markdown(f"**{_title(lesson)}**", width="content")
        for i, station in enumerate(lesson.stations):
            tick = " ✓" if lesson.name(i) in done else ""
            st.button(
                f"{i + 1}{tick}",
                key=f"station-{i}",
                help=station.title,
                type="primary" if i == number else "secondary",
                on_click=open_station,
                args=(lesson, i),
            )
        st.button("Back", key="station-back", disabled=number == 0, on_click=open_station, args=(lesson, number - 1))
        label = "Next" if number < last else "Finish"
        st.button(label, key="station-next", icon=":material/arrow_forward:", on_click=_finish, args=(lesson, number))


def _finish(lesson: Lesson, number: int) -> None:
    """Before the page runs again: tick the station off and go on."""
    st.session_state[DONE] = st.session_state.get(DONE, frozenset()) | {lesson.name(number)}
    if number + 1 < len(lesson.stations):
        open_station(lesson, number + 1)
    else:
        open_list()


def _finished(station: str = "") -> frozenset[str]:
    """Names of the stations that this browser has finished, now or on an earlier visit.

    Args:
        station: the name of the open one, which the browser shows from its top; empty on the list of lessons.
    """
    state = st.session_state
    kept = state.get(TICKS, {}).get("done") or []
    state[DONE] = state.get(DONE, frozenset()) | {str(name) for name in kept}
    data = {"done": sorted(state[DONE]), "station": station}
    component("ticks")(key=TICKS, data=data, on_done_change=lambda: None)
    return state[DONE]


def _offer_return(run: Run, lesson: Lesson, number: int) -> None:
    """Where the visitor has changed something: what that means, and the way back."""
    station = lesson.stations[number]
    here = (run.opened.name, run.source, run.kind, run.layer, run.head)
    if here != (station.checkpoint, station.source, station.kind, station.layer, station.head) or run.tau != 1:
        st.button(
            "You have changed something: back to this station's sentence and head",
            key="station-return",
            icon=":material/undo:",
            type="tertiary",
            on_click=open_station,
            args=(lesson, number),
        )
