"""Fill in: hide words with a click, choose a hidden place, and the table of candidates."""

import re
from collections.abc import Sequence
from itertools import islice

import pandas as pd
import streamlit as st

from model.trace import Trace
from pages.compute.view import View
from pages.widgets.controls import choice, set_controls
from viz.tokens import as_markdown, labels, visible

WORDS = "fill-words"
MOST_WORDS = 60
"""offered for hiding"""


def offer_words(view: View) -> None:
    """Every word of the text as a button that hides it, or shows what it was before it was hidden."""
    words, mask = view.source.split()[:MOST_WORDS], view.translator.tokenizer.mask_token
    if not mask:
        return
    st.session_state["fill-shown"] = tuple(words), mask
    st.pills(
        f"Hide a word with a click, or type {as_markdown(mask)}",
        range(len(words)),
        format_func=lambda number: as_markdown(visible(words[number])),
        key=WORDS,
        on_change=_hide,
    )


def hide_word(text: str, number: int, mask: str) -> str:
    """`text` with its word `number` replaced by the mask; punctuation around the word stays."""
    word = next(islice(re.finditer(r"\S+", text), number, None))
    hidden = re.sub(r"^(\W*).*?(\W*)$", lambda found: f"{found[1]}{mask}{found[2]}", word[0])
    return text[: word.start()] + hidden + text[word.end() :]


def _hide() -> None:
    number = st.session_state[WORDS]
    st.session_state[WORDS] = None
    words, mask = st.session_state["fill-shown"]
    if number is not None and number < len(words) and mask not in words[number]:
        set_controls({"source": hide_word(st.session_state["source"], number, mask)})


def choose_mask(places: Sequence[int], trace: Trace) -> int:
    """The position of one hidden token."""
    filled = labels(trace.next_tokens)
    options = {place: f"{place}: {as_markdown(filled[place])}" for place in places}
    return choice("Hidden token", options, "fill_place") if len(places) > 1 else places[0]


def say_nothing_hidden(view: View) -> None:
    """What to do where no token is hidden."""
    mask = view.translator.tokenizer.mask_token
    if not mask:
        st.info("The tokenizer of this model has no token for a hidden word, so there is nothing to fill in.")
        return
    st.info(
        f"Nothing is hidden in this text. Click a word above, or type {as_markdown(mask)} in its place.",
        icon=":material/info:",
    )


def list_candidates(trace: Trace, places: Sequence[int]) -> pd.DataFrame:
    """The candidates of every hidden token, best first."""
    rows = [
        (place, rank, candidate.token, candidate.id, candidate.probability)
        for place in places
        for rank, candidate in enumerate(trace.candidates[place], start=1)
    ]
    return pd.DataFrame(rows, columns=["position", "rank", "token", "id", "probability"])
