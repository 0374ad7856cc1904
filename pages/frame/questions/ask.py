"""A question about the run on screen: asked, guessed or approached by hints, and answered by the run.

Stations of Learn and Guess first ask with it.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

import streamlit as st

from model.language import later, tr
from model.run import Run
from pages.lessons.question import Asked, Question, ask_one
from viz.tokens import as_markdown

PROGRESS = "questions"
"""in the session: how far each question is, by its key"""
SKIPPED = -1
RUNGS = later("A hint"), later("Another hint"), later("The answer, from this run")
"""of the ladder to the answer"""
OnAnswer = Callable[[bool], None]
"""called before the page runs again, with whether the answer was right; at the end of a ladder it is; never where one
skips"""


@dataclass(frozen=True)
class Progress:
    """How far a person is with the question of a place."""

    subject: Hashable = None
    """what it is about; when this changes, another one is asked"""
    number: int = 0
    """of the questions about one subject"""
    asked: Asked | None = None
    """None: it has hints, or there is nothing to choose from"""
    hints: int = 0
    """how many are open; one more than there are: the answer is"""
    guess: int | None = None
    """an option, or SKIPPED; None before"""


def ask(
    run: Run, key: str, questions: Sequence[Question], subject: Hashable, on_answer: OnAnswer, *, quiz: bool = False
) -> bool:
    """Draw a question as far as it is, with the way on; returns whether its answer is to be seen.

    `key` is that of the place that asks, unique in the session. Several of its `questions` take turns, another one each
    time the `subject` changes; one with hints stands alone. `quiz`: a picture waits for the answer.
    """
    question, progress = questions[0], st.session_state.get(PROGRESS, {}).get(key)
    if question.hints:
        return _draw_ladder(run, key, question, progress or Progress(), on_answer)
    if progress is None or progress.subject != subject:
        number = progress.number + 1 if progress else 0
        progress = _keep(key, Progress(subject, number, ask_one(run, questions, number)))
    asked = progress.asked
    if asked is None:
        text = (
            tr("Guess first: there is nothing to guess on this page for this run.")
            if quiz
            else answer_text(run, question)
        )
        st.markdown(text)
        return True
    st.markdown(asked.text)
    if progress.guess is None:
        _offer_options(key, progress, on_answer, quiz)
        return False
    _show_verdict(asked, progress.guess)
    st.markdown(asked.answer)
    label = tr("Another question") if quiz else tr("Ask me again")
    again = replace(progress, subject=None)
    st.button(label, key=f"guess-next-{key}", icon=":material/refresh:", on_click=_keep, args=(key, again))
    return True


def answer_text(run: Run, question: Question) -> str:
    """What the run answers, with a note where it does not show what was to be seen."""
    answer = question.answer_of(run)
    if answer.holds:
        return answer.text
    note = tr("This run does not show the effect. Go back to this station's sentence and head to see it.")
    return f"{answer.text}\n\n:small[{note}]"


def _draw_ladder(run: Run, key: str, question: Question, progress: Progress, on_answer: OnAnswer) -> bool:
    st.markdown(f"**{tr('Why?')}** {question.ask}")
    for hint in question.hints[: progress.hints]:
        st.markdown(f":material/lightbulb: {hint}")
    if progress.hints <= len(question.hints):
        last = progress.hints == len(question.hints)
        st.button(tr([*RUNGS][progress.hints]), key="rung", on_click=_climb, args=(key, progress, on_answer, last))
        return False
    st.markdown(answer_text(run, question))
    return True


def _climb(key: str, progress: Progress, on_answer: OnAnswer, last: bool) -> None:
    """Before the page runs again: one more hint, or the answer."""
    _keep(key, replace(progress, hints=progress.hints + 1))
    if last:
        on_answer(True)


def _offer_options(key: str, progress: Progress, on_answer: OnAnswer, quiz: bool) -> None:
    options, widget = progress.asked.options, f"guess-{key}"

    def take(guess: int | None = None) -> None:
        """Before the page runs again: the answer may be shown, and the query that it is about is marked."""
        guess = st.session_state[widget] if guess is None else guess
        if guess is None:
            return
        _keep(key, replace(progress, guess=guess))
        if progress.asked.row is not None:
            st.session_state["query"] = progress.asked.row
        if guess != SKIPPED:
            on_answer(guess in progress.asked.right)

    st.pills(
        tr("Your guess"),
        range(len(options)),
        format_func=lambda i: as_markdown(options[i]),
        key=widget,
        on_change=take,
        label_visibility="collapsed",
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        if quiz:
            st.caption(tr("The picture waits for your guess."), width="content")
        skip = f"guess-skip-{key}"
        st.button(tr("Skip: show me"), key=skip, type="tertiary", on_click=take, args=(SKIPPED,))


def _show_verdict(asked: Asked, guess: int) -> None:
    if guess == SKIPPED:
        st.markdown(tr("**The answer**"))
    elif guess in asked.right:
        st.markdown(tr(":green[**✓ Right**]"))
    else:
        st.markdown(tr(":orange[**✗ Not this one**]"))
        st.text(tr("Your guess: {option}", option=asked.options[guess]))


def _keep(key: str, progress: Progress) -> Progress:
    st.session_state[PROGRESS] = st.session_state.get(PROGRESS, {}) | {key: progress}
    return progress
