"""The translation of all that was typed, where the views show its beginning only."""

import streamlit as st

from pages.components.frame import View

SENTENCES_AT_ONCE = 16


def whole_translation(view: View) -> None:
    """On request, sentence by sentence, with progress; nothing where the views show everything."""
    if view.source == view.trace.source:
        return
    parts = view.translator.parts(view.source)
    if not st.button(f"Translate all of it: {len(parts):,} sentences", icon=":material/translate:"):
        return
    beam_size = 1 if len(parts) > 200 else 4
    bar = st.progress(0.0, f"0 of {len(parts):,} sentences")
    translated: list[str] = []
    for start in range(0, len(parts), SENTENCES_AT_ONCE):
        some = parts[start : start + SENTENCES_AT_ONCE]
        translated += view.translator.translate(some, beam_size, interventions=view.trace.interventions)
        bar.progress(len(translated) / len(parts), f"{len(translated):,} of {len(parts):,} sentences")
    bar.empty()
    st.caption("Each sentence by itself, " + ("beam 4." if beam_size == 4 else "greedy, because they are many."))
    st.code(" ".join(translated), language=None, wrap_lines=True, height=240)
