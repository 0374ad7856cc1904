"""The home page around its views: the translation, long texts, and the cards of the other pages."""

import streamlit as st

from model.language import tr
from model.run import Run
from pages.compute.runs import translate
from pages.views.explore.word_in_head import sides_of
from pages.widgets.explain import say
from pages.widgets.page_links import cards
from pages.widgets.present import presents
from viz.html import translated

SENTENCES_AT_ONCE = 16
MANY = 200
"""from this many sentences on, a long text is translated greedily"""


def show_translation(run: Run) -> None:
    """The translation, and the rest of a long one."""
    kind = next((side.kind for side in sides_of(run) if side.first), "")
    st.html(translated(run.trace.translation, run.trace.source, run.trace.next_tokens if kind else (), kind))
    _translate_long_text(run)


def show_cards(file: str) -> None:
    """A card for every page but the one in `file`."""
    if not presents():
        st.header(tr("Look inside"), anchor=False)
        cards(file)


def _translate_long_text(run: Run) -> None:
    """On request, translate a text of which the page shows only the beginning, sentence by sentence with progress."""
    if run.opened.prepare(run.source) == run.trace.source:
        return
    parts = tuple(part.strip() for part in run.opened.parts(run.source))
    st.button(
        tr("Translate all of it: {count:,} sentences", count=len(parts)),
        icon=":material/translate:",
        on_click=st.session_state.update,
        args=({"whole": run.source},),
    )
    if st.session_state.get("whole") != run.source:
        return
    beam_size = 1 if len(parts) > MANY else 4
    bar = st.progress(0.0, tr("{done:,} of {count:,} sentences", done=0, count=len(parts)))
    translated: list[str] = []
    for start in range(0, len(parts), SENTENCES_AT_ONCE):
        some = parts[start : start + SENTENCES_AT_ONCE]
        translated += translate(run.opened, some, beam_size, run.trace.interventions)
        said = tr("{done:,} of {count:,} sentences", done=len(translated), count=len(parts))
        bar.progress(len(translated) / len(parts), said)
    bar.empty()
    say("home", "A long text", greedy=beam_size == 1)
    st.code(" ".join(translated), language=None, wrap_lines=True, height=240)
