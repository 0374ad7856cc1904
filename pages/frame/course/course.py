"""A teacher's course: views of the app in an order, with instructions and questions, all of it in one address.

The server stores nothing: the course is in the link, and a student's answers stay in the student's browser.
"""

import base64
import json
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import streamlit as st

from model.language import Refusal, sentence, tr, tr_error
from pages import EVERY, page_of
from pages.frame.address.menu import HOME
from pages.widgets.canvas import component

COURSE, STEP = "course", "course_step"
"""in the session and in the URL: the course as `encode` wrote it; the number of the open step, from 1"""
DRAFT = "course-draft"
"""in the session: the steps of the course that a teacher is putting together"""
MOST_STEPS, LONGEST_TEXT, LONGEST_CODE = 30, 600, 12_000
"""steps; characters of an instruction or a question; characters of a course in its address"""
MOST_BYTES = 200_000
"""that an unpacked course may have"""
NAMES = {page.name for page in EVERY}
"""of the pages"""
EMBEDDING = {"embed", "embed_options"}
"""URL parameters that say how a page is shown, not what"""
BROKEN = sentence("This link's course is damaged or was cut off. Ask for the link again and copy all of it.")


@dataclass(frozen=True)
class Step:
    """One view, what to do there, and a question."""

    page: str
    """name of the page's file, without .py"""
    inputs: Mapping[str, str]
    """the parameters of the view's URL"""
    do: str = ""
    ask: str = ""

    @property
    def title(self) -> str:
        return page_of(self.page).title

    @property
    def address(self) -> str:
        """The page's part of the URL, relative to the app's own."""
        return "./" if self.page == HOME.name else self.page


@dataclass(frozen=True)
class Course:
    """Steps in the teacher's order."""

    title: str
    steps: tuple[Step, ...]


def encode(course: Course) -> str:
    """The course as text for a URL."""
    steps = [[step.page, dict(step.inputs), step.do, step.ask] for step in course.steps]
    text = json.dumps([course.title, steps], ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")


def decode(code: str) -> Course:
    """What `encode` wrote.

    Raises:
        ValueError: the text is not a course; the sentence says what to do.
    """
    if len(code) > LONGEST_CODE:
        raise Refusal(BROKEN)
    try:
        packed = base64.b64decode(code + "=" * (-len(code) % 4), altchars=b"-_", validate=True)
        unpacking = zlib.decompressobj()
        text = unpacking.decompress(packed, MOST_BYTES)
        if not unpacking.eof:
            raise Refusal(BROKEN)
        title, steps = json.loads(text)
        course = Course(_text(title), tuple(_step(*step) for step in steps))
    except (ValueError, TypeError, zlib.error, RecursionError) as error:
        raise Refusal(BROKEN) from error
    if not 1 <= len(course.steps) <= MOST_STEPS:
        raise Refusal(
            "A course has between 1 and {most} steps; this link's has {count}.",
            most=MOST_STEPS,
            count=len(course.steps),
        )
    return course


def _step(page: str, inputs: Mapping[str, str], do: str, ask: str) -> Step:
    if page not in NAMES or any(name in {COURSE, STEP} for name in inputs):
        raise Refusal(BROKEN)
    return Step(
        page, {_text(name): _text(value, LONGEST_CODE) for name, value in inputs.items()}, _text(do), _text(ask)
    )


def _text(value: Any, longest: int = LONGEST_TEXT) -> str:
    if not isinstance(value, str) or len(value) > longest:
        raise Refusal(BROKEN)
    return value


def step_of(page: str, inputs: Mapping[str, str]) -> Step:
    """A step that shows the page with these URL parameters; those of an open course are left out."""
    return Step(page, {k: v for k, v in inputs.items() if k not in {COURSE, STEP} | EMBEDDING})


def step_at(address: str) -> Step:
    """A step that shows what a link of this app shows; the address may begin with the page's name.

    Raises:
        ValueError: it names no page of this app.
    """
    try:
        parts = urlsplit(address.strip())
    except ValueError as error:
        raise Refusal("This is not an address. Copy it with Share, above the page.") from error
    name = unquote(parts.path.rstrip("/").rsplit("/", 1)[-1])
    page = name if name in NAMES else HOME.name
    if name not in {*NAMES, ""} or not (parts.scheme or name):
        raise Refusal("This address names no page of this app. Copy it with Share, above the page.")
    return step_of(page, dict(parse_qsl(parts.query)))


def draft() -> dict[int, Step]:
    """The steps of the course that a teacher is putting together, by serial number, in their order."""
    return st.session_state.setdefault(DRAFT, {})


def add_step(step: Step) -> None:
    """Put a step at the end of the draft, unless that is full."""
    steps = draft()
    if len(steps) < MOST_STEPS:
        steps[max(steps, default=0) + 1] = step


def open_course() -> tuple[Course, str, int | None] | None:
    """The course that a link has opened, its code, and the number of the open step, from 0; None without a course.

    Raises:
        ValueError: the link's course is damaged; the sentence says what to do.
    """
    state = st.session_state
    if COURSE in st.query_params:
        state[COURSE] = st.query_params[COURSE], st.query_params.get(STEP, "")
    if COURSE not in state:
        return None
    code, number = state[COURSE]
    try:
        course = decode(code)
    except ValueError:
        del state[COURSE]
        raise
    numbers = {str(i + 1): i for i in range(len(course.steps))}
    return course, code, numbers.get(number)


def show_course(file: str) -> bool:
    """Above a page: the open step of the course, with its question and the way on; returns whether there is one."""
    try:
        found = open_course()
    except ValueError as error:
        st.warning(tr_error(error), icon=":material/link_off:")
        return False
    if found is None or found[2] is None:
        return False
    _draw(*found, here=Path(file).stem == found[0].steps[found[2]].page)
    return True


def show_overview() -> bool:
    """On Learn: all steps of the open course, with the answers so far; returns whether there is one."""
    if found := _overview():
        _draw(*found, None, here=True)
    return found is not None


def overview_title() -> str:
    """What Learn is called while it shows the steps of the open course; empty: it shows none."""
    found = _overview()
    return (found[0].title or tr("Course")) if found else ""


def _overview() -> tuple[Course, str] | None:
    """The open course and its code, where none of its steps is open."""
    with suppress(ValueError):
        if (found := open_course()) and found[2] is None:
            return found[:2]
    return None


def _draw(course: Course, code: str, number: int | None, here: bool) -> None:
    steps = [
        {
            "view": tr(step.title),
            "do": step.do,
            "ask": step.ask,
            "link": f"{step.address}?{urlencode({**step.inputs, COURSE: code, STEP: i + 1})}",
        }
        for i, step in enumerate(course.steps)
    ]
    data = {
        "title": course.title,
        "steps": steps,
        "number": number,
        "here": here,
        "overview": f"learn?{urlencode({COURSE: code})}",
        "name": sha256(code.encode()).hexdigest()[:16],
    }
    # The room is kept while the component loads, so that nothing below moves.
    component("course")(key="course-strip", data=data, height="content")
