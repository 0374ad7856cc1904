"""Learn: the list of lessons, a station with its question, and the live views, which other pages share."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

import streamlit as st

from pages.compute.view import View
from pages.frame.render import show_view
from pages.frame.stations import open_list, open_station
from pages.lessons import LESSONS
from pages.lessons.station import Answer, Lesson, Station
from pages.views import (
    decoding,
    gradients,
    heads_and_layers,
    layer_by_layer,
    positional_encoding,
    temperature,
    training,
    whole_model,
    why_attention,
)
from pages.views import since_2017 as modern
from pages.widgets.canvas import component, draw
from pages.widgets.chart import axis_labels, chart
from pages.widgets.page_links import link_with
from viz.charts.heads_and_layers import head_map
from viz.steps.head import Choice, head_of
from viz.steps.steps import picture

DONE, RUNGS = "stations-done", "rungs"
"""in the session: names of the finished stations; how much of each ladder has been shown, by name"""
TICKS = "ticks"
"""key of the component that keeps the finished stations in the browser"""


def show_lessons() -> None:
    """A card for each lesson, with the stations that are done."""
    done = _finished()
    for start in range(0, len(LESSONS), 2):
        for column, lesson in zip(st.columns(2), LESSONS[start : start + 2], strict=False):
            with column.container(border=True, height="stretch"):
                _show_card(lesson, LESSONS.index(lesson) + 1, done)


def _show_card(lesson: Lesson, number: int, done: frozenset[str]) -> None:
    count = len(lesson.stations)
    ticked = [lesson.name(i) in done for i in range(count)]
    st.markdown(f"**{number}. {lesson.title}**")
    st.markdown(lesson.about)
    with st.container(horizontal=True, vertical_alignment="center"):
        first = ticked.index(False) if not all(ticked) else 0
        label = "Again" if all(ticked) else "Continue" if any(ticked) else "Start"
        st.button(label, key=f"lesson-{lesson.slug}", on_click=open_station, args=(lesson, first))
        st.caption(f"{sum(ticked)} of {count} stations done · about {lesson.minutes} minutes", width="content")


def show_station(view: View, lesson: Lesson, number: int) -> None:
    """What to do and to look for, the question with its ladder of hints, and the live view beside them."""
    station, name = lesson.stations[number], lesson.name(number)
    _show_way(lesson, number, _finished(name))
    wide = station.live in WIDE
    left, right = st.columns([1, 1] if wide else [2, 3], gap="large")
    with left:
        st.subheader(station.title, anchor=False)
        _offer_return(view, lesson, number)
        st.markdown(f"**Do.** {station.do}")
        st.markdown(f"**Look for.** {station.look_for}")
    with right if wide else left:
        if station.fits(view):
            with st.container(border=True):
                _show_question(view, station, name)
        link_with(station.further, station.page, **station.tab)
    with st.container() if wide else right, st.container(key="learn-live"):
        if station.fits(view):
            VIEWS[station.live](view)
        else:
            st.info(f"This station needs the checkpoint {station.checkpoint}.", icon=":material/info:")


def _show_way(lesson: Lesson, number: int, done: frozenset[str]) -> None:
    """Lesson, its stations as buttons, Back and Next."""
    last = len(lesson.stations) - 1
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="lesson-way"):
        st.button("All lessons", key="lessons", icon=":material/list:", type="tertiary", on_click=open_list)
        st.markdown(f"**{LESSONS.index(lesson) + 1}. {lesson.title}**", width="content")
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


def _offer_return(view: View, lesson: Lesson, number: int) -> None:
    """Where the visitor has changed something: what that means, and the way back."""
    station, place = lesson.stations[number], view.place
    here = (view.translator.name, view.source, place.kind, place.layer, place.head)
    if here != (station.checkpoint, station.source, station.kind, station.layer, station.head) or view.tau != 1:
        st.button(
            "You have changed something: back to this station's sentence and head",
            key="station-return",
            icon=":material/undo:",
            type="tertiary",
            on_click=open_station,
            args=(lesson, number),
        )


def _show_question(view: View, station: Station, name: str) -> None:
    """The question, and as many of the two hints and the answer as were asked for."""
    rung = st.session_state.get(RUNGS, {}).get(name, 0)
    st.markdown(f"**Why?** {station.question}")
    for hint in station.hints[:rung]:
        st.markdown(f":material/lightbulb: {hint}")
    if rung > len(station.hints):
        _show_answer(station.answer(view))
        return
    label = ("A hint", "Another hint", "The answer, from this run")[rung]
    st.button(label, key="rung", on_click=_climb, args=(name, rung + 1))


def _show_answer(answer: Answer) -> None:
    st.markdown(answer.text)
    if not answer.holds:
        st.caption("In this run it is not as the text above says. Back at the station's own sentence and head it is.")


def _climb(name: str, rung: int) -> None:
    st.session_state[RUNGS] = st.session_state.get(RUNGS, {}) | {name: rung}


def _show_map(view: View) -> None:
    attention, head = view.attention, view.head
    rows, keys = axis_labels(attention)
    figure = head_map(rows, keys, attention.pattern[head], attention.mask[head], "attention weight")
    chart(figure, key="learn-map", alt=f"Attention weights of {view.place.title}: rows are queries, columns keys")
    st.caption(f"{view.place.title}. Rows are queries, columns keys.")


def _show_step(view: View, step: int) -> None:
    """The matrices of a step, from 0, of Attention, step by step."""
    head = head_of(view.attention, view.head)
    place = f"{view.kind} layer {view.layer} head {view.head}"
    drawing = picture(step, head, Choice(min(2, len(head.queries.labels) - 1), 0), place)
    draw(drawing, "learn-matrices")


OF_SOURCE = {positional_encoding.SIDE: "source"}
VIEWS: Mapping[str, Callable[[View], object]] = MappingProxyType(
    {
        "map": _show_map,
        "costs": partial(
            show_view,
            view=why_attention.costs,
            only="operations",
            chosen={why_attention.KERNEL: 3, why_attention.NEIGHBOURS: 8},
        ),
        "scores": lambda view: _show_step(view, 1),
        "mask": lambda view: _show_step(view, 3),
        "softmax": lambda view: _show_step(view, 4),
        "values": lambda view: _show_step(view, 5),
        "scaling": partial(show_view, view=temperature.divided),
        "jacobian": partial(show_view, view=gradients.jacobian),
        "mosaic": partial(
            show_view, view=heads_and_layers.heads, only="mosaic", chosen={heads_and_layers.LINES: "head"}
        ),
        "head weights": partial(show_view, view=heads_and_layers.weights),
        "temperature": partial(show_view, view=temperature.live),
        "recurrence": partial(show_view, view=why_attention.recurrence),
        "sum": partial(show_view, view=positional_encoding.sentence, only="sum", chosen=OF_SOURCE),
        "rotation": partial(show_view, view=positional_encoding.table_rotation, chosen=OF_SOURCE),
        "wavelengths": partial(
            show_view, view=positional_encoding.wavelengths, chosen={**OF_SOURCE, positional_encoding.POSITIONS: 64}
        ),
        "order": partial(show_view, view=positional_encoding.order),
        "curves": partial(show_view, view=training.curves),
        "schedule": partial(show_view, view=training.schedule),
        "smoothing": partial(show_view, view=training.smoothing),
        "snapshots": partial(show_view, view=training.snapshots),
        "rope": partial(show_view, view=modern.rope),
        "norms": partial(show_view, view=modern.norms),
        "sharing": partial(show_view, view=modern.sharing),
        "gradient": partial(show_view, view=gradients.layers),
        "sampling": partial(show_view, view=decoding.samples),
        "stream": partial(show_view, view=layer_by_layer.path, only="path"),
        "whole model": partial(show_view, view=whole_model.figure, only="whole_model"),
    }
)
"""name in a station -> the live view"""
WIDE = {
    "stream",
    "whole model",
    "order",
    "rotation",
    "curves",
    "smoothing",
    "rope",
    "norms",
    "sharing",
    "snapshots",
    "gradient",
    "sampling",
}
"""views that need the whole width of the page"""
