"""What if, tab "Which heads matter": what is scored, a text or one token of it, and in which sentences."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import streamlit as st

from model.analysis.heads.head_importance import WHOLE, ScoredText
from model.generation.long_text import split_sentences
from model.language import later, sentence, tr, tr_error
from model.run import Run
from pages.compute.runs import run as run_model
from pages.views import Control, Offer
from pages.views.examples import examples_of
from pages.views.experiment.what_if import NONE_YET, QUESTION, TEXTS
from pages.widgets.controls import choice, select, text_area
from pages.widgets.notices import say_unfamiliar
from viz.labels import say_options
from viz.tokens import decoder_rows, labels

AGAINST, LONGEST_WORD = "which_against", 100
"""URL parameter of the other word, and its longest text"""
SCORED = {"all": later("all tokens"), "token": later("one token")}
SENTENCES, MOST_SENTENCES, LONGEST_TEXT = 10, 50, 20_000
"""example sentences; a person's own at most: how many, and of how many characters"""
ON = {
    "sentence": sentence("this sentence"),
    "examples": sentence("{count} example sentences", count=SENTENCES),
    "own": sentence("your own sentences"),
}


def build_question(run: Run) -> dict[Control, Any]:
    """Draw what chooses the question, and the sentences that are scored instead of the page's own."""
    return {QUESTION: _choose_question(run), TEXTS: _choose_sentences(run)}


def _choose_question(run: Run) -> ScoredText:
    """The whole text, one token of it, or that token against another word."""
    trace = run.trace
    left, middle, right = st.columns([2, 3, 3])
    if choice(Offer(tr("Scored by"), say_options(SCORED)), "which_score", left) == "all":
        return WHOLE
    rows = dict(enumerate(decoder_rows(trace.row_tokens, trace.next_tokens)))
    offer = Offer(tr("The row that"), rows, trace.first_written)
    position = min(select(offer, "which_at", middle), len(rows) - 1)
    others = [candidate for candidate in trace.candidates[position] if candidate.id != trace.next_ids[position]]
    names = dict(zip((c.id for c in others), labels([c.token for c in others]), strict=True))
    word = _choose_other(position, names, right)
    if word is None or isinstance(word, int):
        return ScoredText(position, word)
    ids = run.opened.tokenizer.encode_next(run.opened.prepare(word).strip())
    return ScoredText(position, ids[0] if ids else None)


def _choose_other(position: int, names: Mapping[int, str], place: Any) -> int | str | None:
    """The other word, a token's id or as it was typed; the link has it with its position, such as "4.Rüssel"."""
    key, (linked, _, asked) = f"which-against-{position}", st.query_params.get(AGAINST, "").partition(".")
    if key not in st.session_state and linked == str(position) and asked:
        st.session_state[key] = next((token for token, name in names.items() if name == asked), asked[:LONGEST_WORD])
    word = place.selectbox(
        tr("Against"),
        list(names),
        index=None,
        format_func=lambda i: names.get(i, str(i)),
        key=key,
        accept_new_options=True,
        placeholder=tr("nothing, or another word there"),
        help=tr(
            "One of the most probable tokens, or any word that you type: the score is then log p of the token minus "
            "log p of this one. Heads whose removal lowers it favour the token over the other word."
        ),
    )
    if word is None:
        st.query_params.pop(AGAINST, "")
    else:
        st.query_params[AGAINST] = f"{position}.{names.get(word, word)}"
    return word


def _choose_sentences(run: Run) -> tuple[str, ...]:
    on = choice(Offer(tr("Measured on"), say_options(ON)), "which_on")
    if on == "sentence":
        return ()
    try:
        if on == "examples":
            return tuple(map(run.opened.truncate, examples_of(run.opened.name).sentences[:SENTENCES]))
        return _read_typed(run)
    except ValueError as error:  # without a tokenizer a text is token ids, and words are none
        st.text(tr_error(error))
        return NONE_YET


def _read_typed(run: Run) -> tuple[str, ...]:
    asks = tr("Paste several sentences, as they stand in a text")
    typed = text_area(Offer(tr("Your sentences"), start=""), "which_sentences", asks, tr("Use"))
    parts = (part.strip() for part in split_sentences(typed[:LONGEST_TEXT], lambda _: True))
    sentences = tuple(dict.fromkeys(run.opened.truncate(part) for part in parts if part))
    if len(sentences) > MOST_SENTENCES or len(typed) > LONGEST_TEXT:
        st.caption(tr("Sentences measured, from the first: {count}.", count=min(MOST_SENTENCES, len(sentences))))
    if sentences:
        request = replace(run.request, source=run.opened.truncate(" ".join(sentences)), target=None)
        say_unfamiliar(replace(run, request=request, trace=run_model(run.opened, request)))
    return sentences[:MOST_SENTENCES] or NONE_YET
