"""A question on a page: what is asked, its hints or its options, and, once it is answered, what the run says."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import streamlit as st

from model.language import later, tr
from viz.tokens import as_markdown

PROGRESS = "questions"
"""in the session: how far each question is, by its key"""
SKIPPED = -1
RUNGS = later("A hint"), later("Another hint"), later("The answer, from this run")
"""of the ladder to the answer"""


@dataclass(frozen=True)
class Card:
    """What is drawn of a question. All texts are Markdown, but for the options, which may be tokens."""

    key: str
    """unique in the session"""
    ask: str
    answer: Callable[[], str]
    """what the run says, called when it is to be seen"""
    hints: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    right: tuple[int, ...] = ()
    """the options that are correct"""
    waits: str = ""
    """what waits for an answer, beside the options"""
    more: Callable[[], object] | None = None
    """draws what follows the answer"""
    on_guess: Callable[[int], None] | None = None
    """called with the option, or SKIPPED, before the page runs again"""


@dataclass(frozen=True)
class Progress:
    """How far a person is with a question."""

    hints: int = 0
    """how many are open; one more than there are: the answer is"""
    guess: int | None = None
    """an option, or SKIPPED; None before"""


def show_question(card: Card) -> bool:
    """Draw a question as far as it is, with the way on; returns whether its answer is to be seen."""
    progress = progress_of(card.key)
    st.markdown(card.ask)
    if card.options:
        if progress.guess is None:
            _show_options(card)
            return False
        _show_verdict(card, progress.guess)
    else:
        for hint in card.hints[: progress.hints]:
            st.markdown(f":material/lightbulb: {hint}")
        if progress.hints <= len(card.hints):
            st.button(tr([*RUNGS][progress.hints]), key="rung", on_click=_climb, args=(card.key,))
            return False
    st.markdown(card.answer())
    if card.more:
        card.more()
    return True


def progress_of(key: str) -> Progress:
    """How far a question is."""
    return st.session_state.get(PROGRESS, {}).get(key, Progress())


def begin_question(key: str) -> None:
    """Another question takes the place of the one before: nobody has answered it yet."""
    st.session_state.setdefault(PROGRESS, {}).pop(key, None)


def _set(key: str, progress: Progress) -> None:
    st.session_state[PROGRESS] = st.session_state.get(PROGRESS, {}) | {key: progress}


def _climb(key: str) -> None:
    """Before the page runs again: one more hint, or the answer."""
    progress = progress_of(key)
    _set(key, replace(progress, hints=progress.hints + 1))


def _show_options(card: Card) -> None:
    st.pills(
        tr("Your guess"),
        range(len(card.options)),
        format_func=lambda i: as_markdown(card.options[i]),
        key=f"guess-{card.key}",
        on_change=_take_guess,
        args=(card,),
        label_visibility="collapsed",
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(card.waits, width="content")
        st.button(
            tr("Skip: show me"), key=f"guess-skip-{card.key}", type="tertiary", on_click=_guess, args=(card, SKIPPED)
        )


def _show_verdict(card: Card, guess: int) -> None:
    if guess == SKIPPED:
        st.markdown(tr("**The answer**"))
    elif guess in card.right:
        st.markdown(tr(":green[**✓ Right**]"))
    else:
        st.markdown(tr(":orange[**✗ Not this one**]"))
        st.text(tr("Your guess: {option}", option=card.options[guess]))


def _take_guess(card: Card) -> None:
    guess = st.session_state[f"guess-{card.key}"]
    if guess is not None:
        _guess(card, guess)


def _guess(card: Card, guess: int) -> None:
    """Before the page runs again: the answer may be shown."""
    if progress_of(card.key).guess is None:
        _set(card.key, Progress(guess=guess))
        if card.on_guess:
            card.on_guess(guess)
