"""Learn: the list of lessons, and a station with its question and its picture, a view of any page."""

from functools import partial
from typing import Any

import streamlit as st

from model.language import tr
from model.run import Run
from pages.frame.present_row import draw_present_row, place_present_row
from pages.frame.questions.ask import answer_text, ask
from pages.frame.questions.opened_station import offer_own_sentence, open_list, open_station
from pages.frame.render import PRESENT_TEXT, present_view, show_view
from pages.lessons import lessons
from pages.lessons.guesses import subject_of
from pages.lessons.question import view_named
from pages.lessons.station import Lesson, Station
from pages.views import Control, View
from pages.views.learn.learn import head
from pages.widgets.canvas import component
from pages.widgets.controls import fold
from pages.widgets.export import export_view
from pages.widgets.page_links import link_with
from pages.widgets.proof_strip import proof

DONE = "stations-done"
"""in the session: names of the finished stations"""
TICKS = "ticks"
"""key of the component that keeps the finished stations in the browser"""


def show_lessons() -> None:
    """A card for each lesson, with the stations that are done."""
    done = _finished()
    offer_own_sentence("own-sentence-learn")
    for start in range(0, len(lessons()), 2):
        for column, lesson in zip(st.columns(2), lessons()[start : start + 2], strict=False):
            with column.container(border=True, height="stretch"):
                _show_card(lesson, done)


def show_foot(run: Run) -> None:
    """One line at the end: the proof, and the numbers of the chosen head."""
    export = f":material/download: {tr('Export')}", lambda: export_view(head(run), ())
    fold({"checks": proof(run), "export": export}, "foot-learn", tr("About this page"))


def _show_card(lesson: Lesson, done: frozenset[str]) -> None:
    count = len(lesson.stations)
    ticked = [lesson.name(i) in done for i in range(count)]
    st.markdown(f"**{_title(lesson)}**")
    st.markdown(lesson.about)
    with st.container(horizontal=True, vertical_alignment="center"):
        first = ticked.index(False) if not all(ticked) else 0
        label = tr("Again") if all(ticked) else tr("Go on") if any(ticked) else tr("Start")
        st.button(label, key=f"lesson-{lesson.slug}", on_click=open_station, args=(lesson, first))
        text = tr(
            "{done} of {count} stations done · about {minutes} minutes",
            done=sum(ticked),
            count=count,
            minutes=lesson.minutes,
        )
        st.caption(text, width="content")


def _title(lesson: Lesson) -> str:
    """With its number: 0 is for those who have not met matrices yet."""
    return f"{lessons().index(lesson)}. {lesson.title}"


def show_station(run: Run, lesson: Lesson, number: int) -> None:
    """What to do and to look for, the question with its ladder of hints, and the picture beside them."""
    station, name = lesson.stations[number], lesson.name(number)
    if station.is_done(run):
        _tick(name)
    _show_way(lesson, number, _finished(name))
    left, right = st.columns([1, 1] if station.wide else [2, 3], gap="large")
    with left:
        st.subheader(station.title, anchor=False)
        _offer_return(run, lesson, number)
        for label, text in ((tr("Do"), station.do), (tr("Look for"), station.look_for)):
            if text:
                st.markdown(f"**{label}.** {text}")
    with right if station.wide else left:
        if station.fits(run):
            with st.container(border=True):
                _ask(run, station, name)
        link_with(station.further, station.page, **station.tab)
    with st.container() if station.wide else right, st.container(key="learn-live"):
        if not station.fits(run):
            text = tr("This station needs the checkpoint {name}.", name=station.checkpoint)
            st.info(text, icon=":material/info:")
        else:
            show_view(run, *_live(station))


def present_station(run: Run, lesson: Lesson, number: int) -> None:
    """On a whole screen: what to look for, and the picture; the arrow keys go through the stations."""
    station = lesson.stations[number]
    with place_present_row():
        names = [_title(lesson), station.title]
        draw_present_row(names, number, len(lesson.stations), partial(open_station, lesson))
    with st.container(key="present-words"):
        st.markdown(station.look_for or station.do)
    if station.fits(run):
        present_view(run, *_live(station))


def present_lessons() -> None:
    """The list of lessons on a whole screen."""
    with place_present_row():
        draw_present_row([tr("Learn")], 0, 1, open_list)
    with st.container(key=PRESENT_TEXT):
        show_lessons()


def _live(station: Station) -> tuple[View, str, dict[Control, Any]]:
    """The view that a station shows, the picture of it that stands alone, and values of its controls."""
    view = view_named(station.live)
    return view, station.only, {view.controls[control]: value for control, value in station.given.items()}


def _ask(run: Run, station: Station, name: str) -> None:
    """The question, unless what there is to do is done."""
    if station.is_done(run):
        st.markdown(tr(":green[**✓ Done**]"))
        st.markdown(answer_text(run, station.question))
    else:
        ask(run, name, [station.question], subject_of(run, "learn"), lambda _: _tick(name))


def _show_way(lesson: Lesson, number: int, done: frozenset[str]) -> None:
    """Lesson, its stations as buttons, Back and Next."""
    last = len(lesson.stations) - 1
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="lesson-way"):
        st.button(tr("All lessons"), key="lessons", icon=":material/list:", type="tertiary", on_click=open_list)
        offer_own_sentence("own-sentence-learn")
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
        st.button(
            tr("Back"), key="station-back", disabled=number == 0, on_click=open_station, args=(lesson, number - 1)
        )
        label, go, to = (
            (tr("Next"), open_station, (lesson, number + 1)) if number < last else (tr("Finish"), open_list, ())
        )
        st.button(label, key="station-next", icon=":material/arrow_forward:", on_click=go, args=to)


def _tick(name: str) -> None:
    """Note that a station is done."""
    st.session_state[DONE] = st.session_state.get(DONE, frozenset()) | {name}


def _finished(station: str = "") -> frozenset[str]:
    """Names of the stations that this browser has finished, now or on an earlier visit.

    It shows the open one, `station`, from its top; none is open on the list of lessons.
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
    if (
        here != (station.checkpoint, station.source, station.kind, station.layer, station.head)
        or run.tau != station.controls["tau"]
    ):
        st.button(
            tr("You have changed something: back to this station's sentence and head"),
            key="station-return",
            icon=":material/undo:",
            type="tertiary",
            on_click=open_station,
            args=(lesson, number),
        )
