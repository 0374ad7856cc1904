"""What to cite for a view: this app with the checkpoint that was run, and the paper with the sections that it names."""

from collections.abc import Sequence

import streamlit as st

from model.beside import read_beside
from model.checkpoints.store import shown_name
from model.language import Sentence, sentence, series, tr
from model.trace import Trace

_ENTRIES = read_beside(__file__)
PAPER, APP = (_ENTRIES[name].strip() for name in ("paper", "app"))
ESCAPED = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "~": r"\textasciitilde{}",
    "\\": r"\textbackslash{}",
}


def draw_citations(trace: Trace, view: str, sections: Sequence[str]) -> None:
    """Both entries as BibTeX, with buttons that copy them; without sections of the paper of 2017 only this app is
    cited."""
    st.markdown(tr("**This view**, with the weights that it ran"))
    st.code(app_entry(trace, view), language="latex")
    if sections:
        st.markdown(tr("**The paper**, {sections}", sections=_in_words(sections)))
        st.code(paper_entry(sections), language="latex")


def app_entry(trace: Trace, view: str) -> str:
    """BibTeX of the app; the note names the view, the checkpoint and the hash of its weights."""
    sha = trace.checkpoint_hash or "unknown"
    return APP.format(view=_escaped(view), checkpoint=_escaped(shown_name(trace.checkpoint)), sha=sha)


def paper_entry(sections: Sequence[str]) -> str:
    """BibTeX of the paper; the note names the sections."""
    return PAPER.format(note=f"\n  note      = {{{_in_words(sections).capitalize()}}},")


def _in_words(sections: Sequence[str]) -> Sentence:
    if len(sections) == 1:
        return sentence("section {section}", section=sections[0])
    return sentence("sections {sections}", sections=series(sections))


def _escaped(text: str) -> str:
    """Text as LaTeX shows it."""
    return "".join(ESCAPED.get(character, character) for character in text)
