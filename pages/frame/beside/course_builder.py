"""On Learn: putting a course together from views of this app."""

from dataclasses import replace
from urllib.parse import urlsplit

import streamlit as st

from model.language import later, tr, tr_error
from pages.frame.bar.share import say_where_it_works, show_link, show_qr_code
from pages.frame.course import course as courses
from pages.views import Offer
from pages.widgets.controls import text


def compose() -> None:
    """The steps of the draft with a field for each instruction and question, and the link to hand out."""
    with st.expander(
        tr("For teachers: a course of your own"), icon=":material/edit_note:", expanded=bool(courses.draft())
    ):
        st.markdown(
            tr(
                "Arrange views of this app in your own order, each with an instruction and a question, and hand "
                "out one link. On any page, open **Share** above the page and choose **In a course**, or paste "
                "the address of a view here. Nobody needs an account, and the server stores nothing: the course "
                "is in its link, and the answers stay in each student's browser until the student downloads or "
                "copies them."
            )
        )
        title = text(Offer(tr("Title of the course"), start=""), "course_title", max_chars=100)
        steps = courses.draft()
        for number, (serial, step) in enumerate(steps.items()):
            _show_step(number, serial, step, len(steps))
        with st.form("course-add", border=False, clear_on_submit=True):
            left, right = st.columns([5, 1], vertical_alignment="bottom")
            address = left.text_input(tr("Address of a view"), key="course-address")
            if right.form_submit_button(tr("Add"), width="stretch", disabled=len(steps) >= courses.MOST_STEPS):
                _add_address(address)
        if steps:
            _show_link(courses.Course(title, tuple(steps.values())))


def offer_changes() -> None:
    """Below an open course: its steps as the draft of a new one."""
    found = courses.open_course()
    if found:
        st.button(tr("Change this course into one of my own"), icon=":material/edit:", on_click=_take, args=(found[0],))


def _show_step(number: int, serial: int, step: courses.Step, count: int) -> None:
    with st.container(border=True, gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{number + 1}. {tr(step.title)}**", width="stretch")
            for sign, label, moves in (("arrow_upward", later("Earlier"), -1), ("arrow_downward", later("Later"), 1)):
                st.button(
                    f":material/{sign}:",
                    key=f"course-{label}-{serial}",
                    help=tr(label),
                    disabled=not 0 <= number + moves < count,
                    on_click=_move,
                    args=(serial, moves),
                )
            st.button(
                ":material/close:",
                key=f"course-remove-{serial}",
                help=tr("Remove"),
                on_click=courses.draft().pop,
                args=(serial,),
            )
        shown = " · ".join(f"{name}: {value}" for name, value in step.inputs.items())
        st.text(shown[:300] or tr("with the inputs it begins with"))
        written = {
            field: st.text_input(label, getattr(step, field), courses.LONGEST_TEXT, key=f"course-{field}-{serial}")
            for field, label in (("do", tr("What to do there")), ("ask", tr("A question, to be answered in writing")))
        }
        courses.draft()[serial] = replace(step, **written)


def _add_address(address: str) -> None:
    try:
        courses.add_step(courses.step_at(address))
    except ValueError as error:
        st.warning(tr_error(error), icon=":material/link_off:")
    else:
        st.rerun()


def _move(serial: int, places: int) -> None:
    steps = courses.draft()
    order = list(steps)
    at = order.index(serial)
    order[at], order[at + places] = order[at + places], order[at]
    st.session_state[courses.DRAFT] = {each: steps[each] for each in order}


def _take(course: courses.Course) -> None:
    """Before the page runs again: the course is a draft, and no longer open."""
    state = st.session_state
    state["course_title"] = course.title
    state[courses.DRAFT] = dict(enumerate(course.steps))
    for name in (courses.COURSE, courses.STEP):
        state.pop(name, None)
        st.query_params.pop(name, None)


def _show_link(course: courses.Course) -> None:
    code = courses.encode(course)
    if len(code) > courses.LONGEST_CODE:
        st.warning(
            tr(
                "The course is too long for a link: it has {count:,} characters, and at most {most:,} are possible. "
                "Shorten its texts or remove steps.",
                count=len(code),
                most=courses.LONGEST_CODE,
            ),
            icon=":material/content_cut:",
        )
        return
    here = urlsplit(st.context.url or "")
    root = here.path.rsplit("/", 1)[0]
    address = f"{here.scheme}://{here.netloc}{root}/learn?course={code}"
    st.markdown(tr("**The link to hand out**"))
    show_link("course-link", tr("Link to the course"), "", address)
    say_where_it_works(address)
    tries = tr("What a student sees, in a new tab. Answers that you give there are kept in this browser.")
    st.link_button(tr("Try it"), address, icon=":material/open_in_new:", help=tries)
    show_qr_code("course-qr", address, tr("Opens the course on a phone."))
