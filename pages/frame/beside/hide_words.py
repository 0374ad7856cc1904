"""The words of a text as buttons that hide them."""

import streamlit as st

from model.language import tr
from model.run import Run
from pages.frame.render import show_view
from pages.views.explore.fill_in import hide_word
from pages.views.explore.translate import explore
from pages.widgets.controls import set_controls
from viz.tokens import as_markdown, visible

WORDS = "fill-words"
MOST_WORDS = 60
"""offered for hiding"""


def hide_and_explore(run: Run) -> None:
    """Words to hide, and one token in one head."""
    offer_words(run)
    show_view(run, explore)


def offer_words(run: Run) -> None:
    """Every word of the text as a button that hides it."""
    words, mask = run.source.split()[:MOST_WORDS], run.opened.tokenizer.mask_token
    if not mask:
        return
    st.session_state["fill-shown"] = tuple(words), mask
    st.pills(
        tr("Hide a word with a click, or type {mask}", mask=as_markdown(mask)),
        range(len(words)),
        format_func=lambda number: as_markdown(visible(words[number])),
        key=WORDS,
        on_change=_hide,
    )


def _hide() -> None:
    number = st.session_state[WORDS]
    st.session_state[WORDS] = None
    words, mask = st.session_state["fill-shown"]
    if number is not None and number < len(words) and mask not in words[number]:
        set_controls({"source": hide_word(st.session_state["source"], number, mask)})
