"""Guess first: a question about the run on screen, asked before its picture is shown, for people who want it."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import partial

import streamlit as st

from model.language import tr
from model.run import Run
from pages.lessons.guesses import ask, questions, subject_of
from pages.lessons.question import Asked
from pages.widgets.controls import is_on
from pages.widgets.proof_strip import proof_strip
from pages.widgets.question import SKIPPED, Card, begin_question, show_question

GUESSES, SWITCH = "guesses", "guess_first"
"""in the session: the open question of each page, and the score; whether questions are wanted"""


@dataclass(frozen=True)
class OpenQuestion:
    """The question of a page, kept together with its answer while the page shows the same place."""

    subject: Hashable
    """what it is about; when this changes, the page asks another question"""
    number: int
    """of the questions about one subject"""
    question: Asked | None
    """None: there is nothing to guess"""


def turn_guessing() -> None:
    """Before the page runs again: ask questions, or no longer."""
    st.session_state[SWITCH] = "" if is_on(SWITCH) else "true"


def guess_first(run: Run, page: str) -> None:
    """If the switch is on, a question; until that is answered or skipped, the page ends below it."""
    if is_on(SWITCH) and page in questions() and not _show(run, page):
        proof_strip(run)
        st.stop()


def _show(run: Run, page: str) -> bool:
    """Draw the question or its answer; returns whether the picture may be shown."""
    state = st.session_state.setdefault(GUESSES, {"right": 0, "asked": 0})
    current = state.get(page)
    if current is None or current.subject != subject_of(run, page):
        number = current.number + 1 if current else 0
        current = state[page] = OpenQuestion(subject_of(run, page), number, ask(run, page, number))
        begin_question(page)
    asked = current.question
    if asked is None:
        st.caption(tr("Guess first: there is nothing to guess on this page for this run."))
        return True
    card = Card(
        page,
        asked.text,
        lambda: asked.answer,
        options=asked.options,
        right=asked.right,
        waits=tr("The picture waits for your guess."),
        more=partial(_offer_another, page),
        on_guess=partial(_count, asked),
    )
    with st.container(border=True, key="guess"):
        answered = show_question(card)
        if state["asked"]:
            st.caption(tr("{right} of {asked} right in this session", right=state["right"], asked=state["asked"]))
    return answered


def _count(asked: Asked, guess: int) -> None:
    """Before the page runs again: the query that the question is about is marked, and a guess counts."""
    state = st.session_state[GUESSES]
    if asked.row is not None:
        st.session_state["query"] = asked.row
    if guess != SKIPPED:
        state["asked"] += 1
        state["right"] += guess in asked.right


def _offer_another(page: str) -> None:
    key = f"guess-next-{page}"
    st.button(tr("Another question"), key=key, icon=":material/refresh:", on_click=_ask_another, args=(page,))


def _ask_another(page: str) -> None:
    """Before the page runs again: without a subject, the current question is replaced by the next one."""
    current = st.session_state.get(GUESSES, {}).get(page)
    if current is not None:
        st.session_state[GUESSES][page] = replace(current, subject=None)
