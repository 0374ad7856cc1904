"""Guess first: a question about the run on screen, asked before its picture is shown, for people who want it."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import streamlit as st

from model.analysis.head_summary import summarise
from model.analysis.softmax import softmax_at
from model.trace import Array
from pages.compute.view import View
from pages.widgets.chart import axis_labels
from pages.widgets.controls import toggle
from pages.widgets.proof_strip import proof_strip
from viz.tokens import as_markdown


@dataclass(frozen=True)
class Question:
    """A multiple-choice question; all texts are plain text, because they may quote tokens."""

    text: str
    options: tuple[str, ...]
    right: tuple[int, ...]
    """the correct options; several if numbers are equal"""
    answer: str
    """the number, and where the page shows it"""
    row: int | None = None
    """the query it is about, if it is about one"""


ROWS = {"steps": "cell_query", "masks": "row", "temperature": "temperature-row"}
"""page -> key of the control that marks a query in its picture"""
GUESSES = "guesses"
"""in the session: the open question of each page, and the score"""
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


def guess_first(view: View, page: str) -> None:
    """A switch and, if it is on, a question; until that is answered or skipped, the page ends below it."""
    if _ask(view, page):
        proof_strip(view)
        st.stop()


def _ask(view: View, page: str) -> bool:
    """Draw the switch, the question and its answer; returns whether the picture has to wait."""
    state = st.session_state.setdefault(GUESSES, {"right": 0, "asked": 0, "serial": 0})
    with st.container(horizontal=True, vertical_alignment="center"):
        wanted = toggle(
            "Guess first",
            "guess_first",
            width="content",
            help="Asks a question about this run before its picture is shown.",
        )
        if state["asked"]:
            st.caption(f"{state['right']} of {state['asked']} right in this session", width="content")
    if not wanted:
        return False
    current = state.get(page)
    if current is None or current.subject != subject_of(view, page):
        current = state[page] = _next_question(view, page, current.number + 1 if current else 0)
    if current.question is None:
        st.caption("Nothing to guess here: no query has a choice.")
        return False
    with st.container(border=True, key="guess"):
        st.text(current.question.text)
        if current.unanswered:
            _show_options(page, current)
        else:
            _show_answer(page, current)
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


MOST_OPTIONS = 12
ANOTHER = "another"


def about_steps(view: View, number: int) -> Question | None:
    """Which key has the largest weight in one row."""
    attention, head = view.attention, view.head
    rows = rows_with_choice(attention.mask[head])
    if not rows:
        return None
    queries, keys = axis_labels(attention)
    row = rows[(len(rows) // 2 + number) % len(rows)]
    best, weight = highest(attention.pattern[head, row])
    centre = row * (len(keys) - 1) / max(len(queries) - 1, 1)
    options, right = _choose_options(keys, np.flatnonzero(attention.mask[head, row]), centre, best)
    return Question(
        f"Which key gets the largest weight from the query “{queries[row]}” in this head?",
        options,
        right,
        f"{_join(keys, best)}, with a weight of {weight:.3f}: row {row} of step 5, the softmax.",
        row,
    )


def about_heads(view: View, number: int) -> Question | None:
    """Which head of the layer has the largest value of a measure."""
    found = summarise(view.attention)
    if len(found) < 2 or not found[0].choice:
        return None
    asked = [measure for measure in _MEASURES if getattr(found[0], measure[0]) is not None]
    field, question, unit, column = asked[number % len(asked)]
    values = np.array([getattr(head, field) for head in found])
    best, value = highest(values)
    heads = [f"head {head}" for head in range(len(found))]
    options, right = _choose_options(heads, range(len(heads)), 0, best)
    where = f"Column “{column}” of “All heads in numbers” lists all of them."
    return Question(
        f"Which head of layer {view.layer} {question}?",
        options,
        right,
        f"{_join(heads, best).capitalize()}: {unit.format(value)}. {where}",
    )


_MEASURES = (
    ("previous", "looks most at the previous token", "{:.3f} of its weight lies there", "previous"),
    ("entropy", "spreads its weights most evenly", "{:.3f} bits of entropy, the mean of its rows", "entropy (bits)"),
    ("special", "looks most at <s> and </s>", "{:.3f} of its weight lies there", "special"),
    (
        "confidence",
        "is the most confident (largest weight of each row, on average)",
        "{:.3f}, the mean of its rows",
        "confidence",
    ),
)
"""field of a summary, question, unit, column of the table"""


def about_masks(view: View, number: int) -> Question | None:
    """How many keys a row may attend to, or the weight of a masked cell."""
    mask, pattern = view.attention.mask[view.head], view.attention.pattern[view.head]
    if number % 2 and not mask.all():
        return _about_hidden(pattern, mask)
    rows, size = mask.shape
    row = (2 * rows // 3 + number // 2) % rows
    count = int(mask[row].sum())
    counts = sorted({n for n in (1, count, row, row + 1, size - row, size // 2, size) if 1 <= n <= size})
    if len(counts) < 2:
        return None
    queries, _ = axis_labels(view.attention)
    return Question(
        f"At how many of the {size} keys may the query “{queries[row]}” attend?",
        tuple(map(str, counts)),
        (counts.index(count),),
        f"At {count} of {size}: row {row} of the first map has {count} blue and {size - count} hatched cells.",
        row,
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
    """Whether another temperature moves a row's largest weight above a threshold."""
    scaled, mask = view.attention.pre_softmax[view.head], view.attention.mask[view.head]
    rows, tau = rows_with_choice(mask), (0.5, 2.0)[number % 2]
    queries, keys = axis_labels(view.attention)
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
        f"It is {weight:.3f}, on {_join(keys, best)}: softmax(scaled / {tau:g}) of row {row}. "
        f"Move the picture's slider to {tau:g} and see.",
        row,
    )


Ask = Callable[[View, int], Question | None]


QUESTIONS: Mapping[str, Ask] = MappingProxyType(
    {"steps": about_steps, "heads": about_heads, "masks": about_masks, "temperature": about_temperature}
)


def subject_of(view: View, page: str) -> Hashable:
    """What a page's question is about; when it changes, the page asks another question."""
    trace = view.trace
    run = (trace.checkpoint_hash, trace.src_ids, trace.tgt_ids)
    if page == "temperature":
        # The page's slider moves τ, which is how a person checks the answer: that must not replace the question.
        return (*run, view.kind, view.layer, view.head)
    where = {"steps": (view.kind, view.layer, view.head), "heads": (view.kind, view.layer), "masks": (view.kind,)}
    return (*run, trace.interventions, *where[page])


def _choose_options(
    names: Sequence[str], candidates: Sequence[int], centre: float, best: Sequence[int]
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Names of the candidates to choose from, and which of them are correct.

    If there are too many, those nearest to `centre` stay, in their order, and "another" stands for the rest.
    """
    shown = sorted(map(int, candidates), key=lambda place: (abs(place - centre), place))
    if len(shown) > MOST_OPTIONS:
        shown = shown[: MOST_OPTIONS - 1]
    shown.sort()
    options, right = [names[place] for place in shown], [shown.index(place) for place in best if place in shown]
    if len(shown) < len(candidates):
        options.append(ANOTHER)
        right += [len(shown)] * any(place not in shown for place in best)
    return tuple(options), tuple(right)


def _join(names: Sequence[str], chosen: Sequence[int]) -> str:
    texts = [names[i] for i in chosen]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]} alike"


def highest(values: Array) -> tuple[tuple[int, ...], float]:
    """Every position of the largest of (n,) numbers, and that number."""
    most = values.max()
    return tuple(map(int, np.flatnonzero(values == most))), float(most)


def rows_with_choice(mask: Array) -> tuple[int, ...]:
    """The queries of a bool (query, key) mask that may attend to more than one key."""
    return tuple(map(int, np.flatnonzero(mask.sum(axis=-1) > 1)))


def heaviest_hidden(pattern: Array, mask: Array) -> float:
    """The largest weight of any masked cell, of (query, key) weights; 0 where none is masked."""
    return float(pattern[~mask].max(initial=0.0))


def halfway(scaled: Array, mask: Array, tau: float) -> tuple[float, float, float]:
    """A row's largest weight at tau = 1 and at `tau`, and a threshold to compare the second with.

    softmax(x / tau) is softmax(x) to the power of 1 / tau, renormalised, so the new largest weight depends on the
    others: its extremes are reached where the others are equal and where they lie on one key. The threshold is the
    mean of these extremes, rounded to three digits.

    Args:
        scaled: (key,) scores / sqrt(d_k).
        mask: bool (key,), True = may be attended to; at least two keys.
        tau: a temperature other than 1.
    """
    plain = float(softmax_at(scaled, mask, 1.0).max())
    others = int(mask.sum()) - 1
    ends = [plain ** (1 / tau) / (plain ** (1 / tau) + n * ((1 - plain) / n) ** (1 / tau)) for n in (1, others)]
    return plain, float(softmax_at(scaled, mask, tau).max()), round(sum(ends) / 2, 3)
