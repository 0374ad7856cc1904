"""The translation of all that was typed, where the views show its beginning only."""

import streamlit as st

from pages.components.frame import View
from pages.components.runs import translate

SENTENCES_AT_ONCE = 16
MANY = 200
"""sentences from which on the search is greedy"""


def whole_translation(view: View) -> None:
    """On request, sentence by sentence, with progress; nothing where the views show everything."""
    if view.source == view.trace.source:
        return
    parts = tuple(part.strip() for part in view.translator.parts(view.source))
    st.button(
        f"Translate all of it: {len(parts):,} sentences",
        icon=":material/translate:",
        on_click=_ask,
        args=(view.source,),
    )
    if st.session_state.get("whole") != view.source:
        return
    beam_size = 1 if len(parts) > MANY else 4
    bar = st.progress(0.0, f"0 of {len(parts):,} sentences")
    translated: list[str] = []
    for start in range(0, len(parts), SENTENCES_AT_ONCE):
        some = parts[start : start + SENTENCES_AT_ONCE]
        translated += translate(view.translator, some, beam_size, view.trace.interventions)
        bar.progress(len(translated) / len(parts), f"{len(translated):,} of {len(parts):,} sentences")
    bar.empty()
    st.caption("Each sentence by itself, " + ("beam 4." if beam_size == 4 else "greedy, because they are many."))
    st.code(" ".join(translated), language=None, wrap_lines=True, height=240)


def _ask(text: str) -> None:
    st.session_state["whole"] = text
