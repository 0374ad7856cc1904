"""Predict, then reveal: a question about the run on screen, asked before its picture, where a person wants it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import streamlit as st

from model.analysis.head_summary import summarise
from model.trace import Array
from pages.frame.proof_strip import proof_strip
from pages.frame.view import View
from pages.parts.masks import names
from pages.widgets.guesses import halfway, heaviest_hidden, highest, rows_with_choice
from viz.tokens import as_markdown


@dataclass(frozen=True)
class Question:
    """All as plain text: it may quote tokens."""

    text: str
    options: tuple[str, ...]
    right: tuple[int, ...]
    """which options are right: more than one where numbers are equal"""
    answer: str
    """the number, and where to see it"""


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


MOST_OPTIONS = 12


ANOTHER = "another"


def about_steps(view: View, number: int) -> Question | None:
    """Which key one query looks at most."""
    attention, head = view.attention, view.head
    rows = rows_with_choice(attention.mask[head])
    if not rows:
        return None
    queries, keys = names(view, attention)
    row = rows[(len(rows) // 2 + number) % len(rows)]
    best, weight = highest(attention.pattern[head, row])
    centre = row * (len(keys) - 1) / max(len(queries) - 1, 1)
    options, right = _few(keys, np.flatnonzero(attention.mask[head, row]), centre, best)
    return Question(
        f"Which key will the query “{queries[row]}” look at most in this head?",
        options,
        right,
        f"{_listed(keys, best)}, with a weight of {weight:.3f}: row {row} of step 5, the softmax.",
    )


def about_heads(view: View, number: int) -> Question | None:
    """Which head of the layer has most of some measure."""
    found = summarise(view.attention)
    if len(found) < 2 or not found[0].choice:
        return None
    asked = [measure for measure in _MEASURES if getattr(found[0], measure[0]) is not None]
    field, question, unit, column = asked[number % len(asked)]
    values = np.array([getattr(head, field) for head in found])
    best, value = highest(values)
    heads = [f"head {head}" for head in range(len(found))]
    options, right = _few(heads, range(len(heads)), 0, best)
    where = f"Column “{column}” of “All heads in numbers” lists all of them."
    return Question(
        f"Which head of layer {view.layer} {question}?",
        options,
        right,
        f"{_listed(heads, best).capitalize()}: {unit.format(value)}. {where}",
    )


_MEASURES = (
    ("previous", "looks most at the previous token", "{:.3f} of its weight lies there", "previous"),
    ("entropy", "spreads its weights most evenly", "{:.3f} bits of entropy, the mean of its rows", "entropy (bits)"),
    ("special", "looks most at <s> and </s>", "{:.3f} of its weight lies there", "special"),
    ("confidence", "is the surest, with the largest weight in its rows", "{:.3f}, the mean of its rows", "confidence"),
)
"""field of a summary, question, unit, column of the table"""


def about_masks(view: View, number: int) -> Question | None:
    """How many cells of a row are open, or what a masked cell weighs."""
    mask, pattern = view.attention.mask[view.head], view.attention.pattern[view.head]
    if number % 2 and not mask.all():
        return _about_hidden(pattern, mask)
    rows, size = mask.shape
    row = (2 * rows // 3 + number // 2) % rows
    count = int(mask[row].sum())
    counts = sorted({n for n in (1, count, row, row + 1, size - row, size // 2, size) if 1 <= n <= size})
    if len(counts) < 2:
        return None
    queries, _ = names(view, view.attention)
    return Question(
        f"At how many of the {size} keys may the query “{queries[row]}” look?",
        tuple(map(str, counts)),
        (counts.index(count),),
        f"At {count} of {size}: row {row} of the first map has {count} blue and {size - count} hatched cells.",
    )


def _about_hidden(pattern: Array, mask: Array) -> Question:
    weight = heaviest_hidden(pattern, mask)
    return Question(
        "What is the weight of a masked cell, after the softmax?",
        ("exactly 0", "above 0, but below 0.001", "0.001 or more"),
        (0 if weight == 0 else 1 if weight < 0.001 else 2,),
        f"The largest weight of the {int((~mask).sum())} masked cells of this head is "
        f"{'0.000, exactly 0' if weight == 0 else f'{weight:.3g}'}: the hatched cells of the fourth map.",
    )


def about_temperature(view: View, number: int) -> Question | None:
    """Whether another temperature brings a row's largest weight past a threshold."""
    scaled, mask = view.attention.scaled[view.head], view.attention.mask[view.head]
    rows, tau = rows_with_choice(mask), (0.5, 2.0)[number % 2]
    queries, keys = names(view, view.attention)
    for i in range(len(rows)):
        row = rows[(len(rows) // 2 + number // 2 + i) % len(rows)]
        plain, weight, line = halfway(scaled[row], mask[row], tau)
        if round(weight, 3) != line:
            break
    else:
        return None
    best, _ = highest(np.where(mask[row], scaled[row], -np.inf))
    return Question(
        f"At τ = 1 the largest weight of the query “{queries[row]}” is {plain:.3f}. "
        f"Will it be above or below {line:.3f} at τ = {tau:g}?",
        (f"Above {line:.3f}", f"Below {line:.3f}"),
        (0 if weight > line else 1,),
        f"It is {weight:.3f}, on {_listed(keys, best)}: softmax(scaled / {tau:g}) of row {row}. "
        f"Move the picture's slider to {tau:g} and see.",
    )


Ask = Callable[[View, int], Question | None]


QUESTIONS: Mapping[str, Ask] = MappingProxyType(
    {"steps": about_steps, "heads": about_heads, "masks": about_masks, "temperature": about_temperature}
)


def place_of(view: View, page: str) -> tuple:
    """What a page's question is about: where this changes, the question is another one."""
    trace = view.trace
    run = (trace.checkpoint_hash, trace.src_ids, trace.tgt_ids)
    if page == "temperature":
        # Its slider moves τ: that answers the question, and is no reason to ask another.
        return (*run, view.kind, view.layer, view.head)
    where = {"steps": (view.kind, view.layer, view.head), "heads": (view.kind, view.layer), "masks": (view.kind,)}
    return (*run, trace.interventions, *where[page])


def _few(
    called: Sequence[str], candidates: Sequence[int], centre: float, best: Sequence[int]
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Names of the candidates to choose from, and which of them are right.

    Where they are too many, those nearest to `centre` stay, in their order, and one name stands for all others.
    """
    shown = sorted(map(int, candidates), key=lambda place: (abs(place - centre), place))
    if len(shown) > MOST_OPTIONS:
        shown = shown[: MOST_OPTIONS - 1]
    shown.sort()
    options, right = [called[place] for place in shown], [shown.index(place) for place in best if place in shown]
    if len(shown) < len(candidates):
        options.append(ANOTHER)
        right += [len(shown)] * any(place not in shown for place in best)
    return tuple(options), tuple(right)


def _listed(called: Sequence[str], found: Sequence[int]) -> str:
    texts = [called[i] for i in found]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]} alike"
