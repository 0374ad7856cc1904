"""Predict, then reveal: a question about the run on screen, asked before its picture, where a person wants it."""

from dataclasses import dataclass, replace

import streamlit as st

from pages.components.frame import View
from pages.components.proof import proof_strip
from pages.components.questions import QUESTIONS, Question, place_of
from viz.tokens import as_markdown

GUESSES = "guesses"
"""in the session: the open question of each page, and the score"""
SKIPPED = -1


@dataclass(frozen=True)
class Asked:
    """One question, as long as its page shows the same place; it keeps the answer that it had when it was asked."""

    place: tuple
    number: int
    serial: int
    """of all questions of the session: no two share a widget"""
    question: Question | None
    guess: int | None = None
    """an option, or SKIPPED; None: it waits"""

    @property
    def waits(self) -> bool:
        return self.question is not None and self.guess is None


def guess_first(view: View, page: str) -> None:
    """One quiet line; where it is switched on, a question. Until it is answered or skipped, the page ends there."""
    if _waits(view, page):
        proof_strip(view)
        st.stop()


def _waits(view: View, page: str) -> bool:
    """Draw the line, the question and its answer; returns whether the picture has to wait."""
    state = st.session_state.setdefault(GUESSES, {"right": 0, "asked": 0, "serial": 0})
    with st.container(horizontal=True, vertical_alignment="center"):
        wanted = st.toggle(
            "Guess first",
            key="guess_first",
            width="content",
            persist_state="session",
            bind="query-params",
            help="A question about this very run, before its picture is shown.",
        )
        if state["asked"]:
            st.caption(f"{state['right']} of {state['asked']} right in this session", width="content")
    if not wanted:
        return False
    asked = state.get(page)
    if asked is None or asked.place != place_of(view, page):
        asked = state[page] = _next(view, page, asked.number + 1 if asked else 0)
    if asked.question is None:
        st.caption("Nothing to guess here: no query has a choice.")
        return False
    with st.container(border=True, key="guess"):
        st.text(asked.question.text)
        if asked.waits:
            _show_choice(page, asked)
        else:
            _show_answer(page, asked)
    return asked.waits


def _next(view: View, page: str, number: int) -> Asked:
    state = st.session_state[GUESSES]
    state["serial"] += 1
    return Asked(place_of(view, page), number, state["serial"], QUESTIONS[page](view, number))


def _show_choice(page: str, asked: Asked) -> None:
    key, options = f"guess-{asked.serial}", asked.question.options
    st.pills(
        "Your guess",
        range(len(options)),
        format_func=lambda i: as_markdown(options[i]),
        key=key,
        on_change=_guess,
        args=(page, key),
        label_visibility="collapsed",
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("The picture waits for your guess.", width="content")
        st.button("Skip: show me", key=f"guess-skip-{page}", type="tertiary", on_click=_settle, args=(page, SKIPPED))


def _show_answer(page: str, asked: Asked) -> None:
    question = asked.question
    if asked.guess == SKIPPED:
        st.markdown("**The answer**")
    elif asked.guess in question.right:
        st.markdown(":green[**✓ Right**]")
    else:
        st.markdown(":orange[**✗ Not this one**]")
        st.text(f"Your guess: {question.options[asked.guess]}")
    st.text(question.answer)
    st.button(
        "Another question",
        key=f"guess-next-{page}",
        icon=":material/refresh:",
        on_click=_ask_again,
        args=(page,),
    )


def _guess(page: str, key: str) -> None:
    guess = st.session_state[key]
    if guess is not None:
        _settle(page, guess)


def _settle(page: str, guess: int) -> None:
    """Before the page runs again: the answer may be seen, and a guess counts."""
    state = st.session_state.get(GUESSES, {})
    asked = state.get(page)
    if asked is None or not asked.waits:
        return
    state[page] = replace(asked, guess=guess)
    if guess != SKIPPED:
        state["asked"] += 1
        state["right"] += guess in asked.question.right


def _ask_again(page: str) -> None:
    """Before the page runs again: it asks what comes next about the same place."""
    asked = st.session_state.get(GUESSES, {}).get(page)
    if asked is not None:
        st.session_state[GUESSES][page] = replace(asked, place=())
