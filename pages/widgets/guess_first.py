"""Guess first: a question about the run on screen, asked before its picture is shown, for people who want it."""

from collections.abc import Hashable
from dataclasses import dataclass, replace

import streamlit as st

from pages.compute.view import View
from pages.widgets.controls import toggle
from pages.widgets.guess_questions import QUESTIONS, Question, subject_of
from pages.widgets.proof_strip import proof_strip
from viz.tokens import as_markdown

ROWS = {"attention_step_by_step": "query", "masks": "query", "temperature": "query"}
"""page -> key of the control that marks a query in its picture"""
GUESSES, SWITCH = "guesses", "guess_first"
"""in the session: the open question of each page, and the score; whether questions are wanted"""
SKIPPED = -1


@dataclass(frozen=True)
class OpenQuestion:
    """The question of a page, kept together with its answer while the page shows the same place."""

    subject: Hashable
    """what it is about; when this changes, the page asks another question"""
    number: int
    """of the questions about one subject"""
    serial: int
    """of all questions of the session, so that no two share a widget"""
    question: Question | None
    """None: there is nothing to guess"""
    guess: int | None = None
    """an option, or SKIPPED; None while it is open"""

    @property
    def unanswered(self) -> bool:
        return self.question is not None and self.guess is None


def offer_guesses() -> None:
    """The switch, in the sidebar."""
    toggle(
        "Guess first",
        SWITCH,
        help="Asks a question about this run on every page, before its picture is shown.",
    )


def guess_first(view: View, page: str) -> None:
    """If the switch is on, a question; until that is answered or skipped, the page ends below it."""
    if st.session_state.get(SWITCH) and page in QUESTIONS and _ask(view, page):
        proof_strip(view)
        st.stop()


def _ask(view: View, page: str) -> bool:
    """Draw the question and its answer; returns whether the picture has to wait."""
    state = st.session_state.setdefault(GUESSES, {"right": 0, "asked": 0, "serial": 0})
    current = state.get(page)
    if current is None or current.subject != subject_of(view, page):
        current = state[page] = _next_question(view, page, current.number + 1 if current else 0)
    if current.question is None:
        st.caption("Guess first: this page has nothing to guess on this run.")
        return False
    with st.container(border=True, key="guess"):
        st.text(current.question.text)
        if current.unanswered:
            _show_options(page, current)
        else:
            _show_answer(page, current)
        if state["asked"]:
            st.caption(f"{state['right']} of {state['asked']} right in this session")
    return current.unanswered


def _next_question(view: View, page: str, number: int) -> OpenQuestion:
    state = st.session_state[GUESSES]
    state["serial"] += 1
    return OpenQuestion(subject_of(view, page), number, state["serial"], QUESTIONS[page](view, number))


def _show_options(page: str, current: OpenQuestion) -> None:
    key, options = f"guess-{current.serial}", current.question.options
    st.pills(
        "Your guess",
        range(len(options)),
        format_func=lambda i: as_markdown(options[i]),
        key=key,
        on_change=_take_guess,
        args=(page, key),
        label_visibility="collapsed",
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("The picture waits for your guess.", width="content")
        st.button("Skip: show me", key=f"guess-skip-{page}", type="tertiary", on_click=_answer, args=(page, SKIPPED))


def _show_answer(page: str, current: OpenQuestion) -> None:
    question = current.question
    if current.guess == SKIPPED:
        st.markdown("**The answer**")
    elif current.guess in question.right:
        st.markdown(":green[**✓ Right**]")
    else:
        st.markdown(":orange[**✗ Not this one**]")
        st.text(f"Your guess: {question.options[current.guess]}")
    st.text(question.answer)
    st.button(
        "Another question",
        key=f"guess-next-{page}",
        icon=":material/refresh:",
        on_click=_ask_another,
        args=(page,),
    )


def _take_guess(page: str, key: str) -> None:
    guess = st.session_state[key]
    if guess is not None:
        _answer(page, guess)


def _answer(page: str, guess: int) -> None:
    """Before the page runs again: the answer may be shown, and a guess counts."""
    state = st.session_state.get(GUESSES, {})
    current = state.get(page)
    if current is None or not current.unanswered:
        return
    state[page] = replace(current, guess=guess)
    if current.question.row is not None:
        st.session_state[ROWS[page]] = current.question.row
    if guess != SKIPPED:
        state["asked"] += 1
        state["right"] += guess in current.question.right


def _ask_another(page: str) -> None:
    """Before the page runs again: without a subject, the current question is replaced by the next one."""
    current = st.session_state.get(GUESSES, {}).get(page)
    if current is not None:
        st.session_state[GUESSES][page] = replace(current, subject=None)
