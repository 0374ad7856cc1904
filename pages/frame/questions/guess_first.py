"""Guess first: a question about the run on screen, asked before its picture is shown, for people who want it."""

import streamlit as st

from model.language import tr
from model.run import Run
from pages.frame.questions.ask import ask
from pages.lessons.guesses import questions, subject_of
from pages.widgets.controls import is_on
from pages.widgets.proof_strip import proof

SCORE, SWITCH = "guesses", "guess_first"
"""in the session: whether each guess was right; whether questions are wanted"""


def turn_guessing() -> None:
    """Before the page runs again: ask questions, or no longer."""
    st.session_state[SWITCH] = "" if is_on(SWITCH) else "true"


def guess_first(run: Run, page: str) -> None:
    """If the switch is on, a question; until that is answered or skipped, the page ends below it."""
    if not is_on(SWITCH) or page not in questions():
        return
    with st.container(border=True, key="guess"):
        answered = ask(run, page, questions()[page], subject_of(run, page), _count, quiz=True)
        if guesses := st.session_state.get(SCORE, []):
            st.caption(tr("{right} of {asked} right in this session", right=sum(guesses), asked=len(guesses)))
    if not answered:
        _, draw = proof(run)
        draw()
        st.stop()


def _count(right: bool) -> None:
    st.session_state[SCORE] = [*st.session_state.get(SCORE, []), right]
