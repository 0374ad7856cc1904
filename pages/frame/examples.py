"""Sentences to begin with: ten that show something, each with the head that shows it, and everyday ones."""

from dataclasses import dataclass

import numpy as np
import streamlit as st

from model.trace import Trace
from viz.tokens import word

EXAMPLES = (
    "The animal didn't cross the street because it was too tired.",
    "How are you?",
    "I have never seen such a beautiful sunset.",
    "She told me that she would come back tomorrow.",
    "Can you help me find my keys?",
    "The bank is closed today, but the shop is open.",
    "My brother wants to buy a new car.",
    "If it rains tomorrow, we will stay at home.",
    "Why didn't you call me last night?",
    "The children are playing in the garden.",
    "He speaks German better than I do.",
    "I don't know what you are talking about.",
    "Tom gave Mary the book that he had bought.",
    "What time does the next train leave?",
    "We went to the cinema, and then we had dinner.",
    "The old man who lives next door has two dogs.",
    "I would like a cup of coffee, please.",
    "They had to wait because the doctor was late.",
    "Good morning! Did you sleep well?",
    "Nobody knows where she has gone.",
    "Two young men are cooking in a kitchen.",
    "A woman is reading a book while her son sleeps on the bench.",
)
"""everyday sentences"""

Word = tuple[str, int]
"""a token without its word-start marker, and which of its occurrences, from 0"""


@dataclass(frozen=True)
class Example:
    """A sentence, and a row of attention weights whose largest one is worth a look."""

    sentence: str
    label: str
    """what it shows, in a few words: for the menu"""
    why: str
    """one sentence more, true of the sentence whatever the model does"""
    kind: str
    layer: int
    head: int
    query: Word
    """the row: in the encoder its own token, in the decoder the one that it predicts"""
    key: Word
    """where the row's largest weight is"""


SHOWING = (
    Example(
        sentence=EXAMPLES[0],
        label="“it”: the animal or the street?",
        why="People know that a street is never tired. This small model cannot tell: its head divides itself among "
        "“tired”, animal and street, and German, which says “es” for the one and “sie” for the other, makes no "
        "difference to it.",
        kind="encoder_self",
        layer=1,
        head=1,
        query=("it", 0),
        key=("tired", 0),
    ),
    Example(
        sentence="The girl likes the dog because it is friendly.",
        label="Who is “it”?",
        why="Four words back, past a “because”: the same head as in the sentence with the animal, and here it is sure.",
        kind="encoder_self",
        layer=1,
        head=1,
        query=("it", 0),
        key=("dog", 0),
    ),
    Example(
        sentence="The woman who has three children works in a hospital.",
        label="Agreement over a distance.",
        why="The verb has to agree with a noun that a whole relative clause, with a plural in it, stands between.",
        kind="decoder_self",
        layer=3,
        head=5,
        query=("arbeitet", 0),
        key=("Frau", 0),
    ),
    Example(
        sentence="Tomorrow I will read the long book.",
        label="The verb goes to the end.",
        why="German splits “will read”: “werde” comes second, “lesen” last.",
        kind="cross",
        layer=3,
        head=3,
        query=("lesen", 0),
        key=("read", 0),
    ),
    Example(
        sentence="I have not seen the dog.",
        label="“not” moves.",
        why="In German the negation comes after the object.",
        kind="cross",
        layer=2,
        head=1,
        query=("nicht", 0),
        key=("not", 0),
    ),
    Example(
        sentence=EXAMPLES[12],
        label="A name and its pronoun.",
        why="Two names come before “he”; only one is usually a man's.",
        kind="encoder_self",
        layer=1,
        head=0,
        query=("he", 0),
        key=("Tom", 0),
    ),
    Example(
        sentence="He sat on the bank of the river.",
        label="Which “bank”?",
        why="A head that finds the clue is no promise: “Bank” in German is a bench or a bank for money, a river has "
        "an “Ufer”.",
        kind="encoder_self",
        layer=2,
        head=2,
        query=("bank", 0),
        key=("river", 0),
    ),
    Example(
        sentence="The dog chased the cat, and the cat chased the dog.",
        label="The same words twice.",
        why="The source has two dogs with the same embedding: only their positions tell this one from the first.",
        kind="cross",
        layer=3,
        head=2,
        query=("Hund", 1),
        key=("dog", 1),
    ),
    Example(
        sentence="Please turn the light off.",
        label="A verb in two parts.",
        why="“turn … off” is one verb with its object in the middle, and so is “schalten … aus”.",
        kind="encoder_self",
        layer=2,
        head=4,
        query=("off", 0),
        key=("turn", 0),
    ),
    Example(
        sentence=EXAMPLES[13],
        label="One verb becomes two words.",
        why="“leave” is “abfahren”, which German takes apart: “fährt” stands second, “ab” last.",
        kind="cross",
        layer=3,
        head=4,
        query=("ab", 0),
        key=("leave", 0),
    ),
    Example(
        sentence="The cat that the dog that the boy owned chased ran away.",
        label="Clauses in clauses.",
        why="Who ran away, who chased, who owned? People lose count here too.",
        kind="encoder_self",
        layer=2,
        head=7,
        query=("that", 1),
        key=("dog", 0),
    ),
)
LABELS = {example.sentence: example.label for example in SHOWING}
MENU = (*LABELS, *(sentence for sentence in EXAMPLES if sentence not in LABELS))


def example_menu() -> None:
    """A menu of all sentences, those that show something first; taking one also goes to its head."""
    st.selectbox(
        "Example sentences",
        MENU,
        index=None,
        key="example",
        format_func=lambda text: f"{LABELS[text]} {text}" if text in LABELS else text,
        placeholder="… or take an example",
        label_visibility="collapsed",
        on_change=_take,
    )


def _take() -> None:
    state = st.session_state
    if sentence := state["example"]:
        state["source"], state["example"] = sentence, None
        for example in SHOWING:
            if example.sentence == sentence:
                state.update(place(example))


def place(example: Example) -> dict[str, str | int]:
    """The values of the sidebar's widgets that show its head."""
    return {"kind": example.kind, "layer": example.layer, "head": example.head}


def largest_weight(example: Example, trace: Trace) -> tuple[int, int, float] | None:
    """Query, key and weight that the example is about; None where this run looks elsewhere, or has other tokens."""
    try:
        pattern = trace.attention(example.kind, example.layer).pattern[example.head]
        rows = trace.src_tokens if example.kind == "encoder_self" else trace.next_tokens
        keys = trace.tgt_tokens if example.kind == "decoder_self" else trace.src_tokens
        query, key = _position(rows, example.query), _position(keys, example.key)
    except (LookupError, ValueError):
        return None
    return (query, key, float(pattern[query, key])) if int(np.argmax(pattern[query])) == key else None


def _position(tokens: tuple[str, ...], wanted: Word) -> int:
    """Raises IndexError where there are fewer of them."""
    return [i for i, token in enumerate(tokens) if word(token) == wanted[0]][wanted[1]]
