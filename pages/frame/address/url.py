"""Mend the URL before a page reads it: old names of parameters, and numbers on which Streamlit's widgets raise."""

from math import isfinite

import streamlit as st
from streamlit.errors import StreamlitAPIException

from model.language import tr
from model.trace import SUBLAYER_TITLES
from pages import Page, page_of
from pages.text import languages

TEXTS = frozenset({
    "source", "turns", "course", "course_title", "typed", "changes", "add", "temperatures", "prefix", "pe_order",
    "layers_token", "layers_step", "side_sentence", "whole_at", "whole_off", "word", "own_query", "own_keys",
    "own_values", "long_source", "which_sentences", "align_pairs", "patch_at", "step_target", "word_third",
    "wrote_typed", "letters",
})  # fmt: skip
"""parameters that hold what somebody typed, any digits and words, because their pages parse them"""
RENAMED = {"row": "query", "temperature-row": "query", "gradients_row": "query"}
"""parameters of older links -> what they are called now"""
MOVED = {("temperature", "Move the query"): ("attention_step_by_step", {"own_from": "this head's"}, "Your own vectors")}
"""tabs of older links, by their page -> the page that has what they showed, what is chosen there, and its tab"""
DROPPED = "dropped-from-link"
"""in the session: what the next run says about the dropped parameters"""


def rename_parameters() -> None:
    """Give parameters of older links, and kinds of attention and steps in them, the names that they have now."""
    kind = st.query_params.get("kind", "")
    short = kind != short_title(kind) and _write("kind", short_title(kind))
    step = st.query_params.get("layers_step", "")
    printed = step != name_step(step) and _write("layers_step", name_step(step))
    old = [name for name in st.query_params if name in RENAMED]
    for name in old:
        value = st.query_params.pop(name)
        if RENAMED[name] not in st.query_params:
            _write(RENAMED[name], value)
    if old or short or printed:
        # Streamlit keeps the URL's first values beside the parameters; only another run forgets them.
        st.rerun()


def follow_moved_tab(page: Page) -> None:
    """Open what a tab of an older link showed where it is now; the link's other parameters go along."""
    asked = st.query_params.get(page.tabs_key)
    for (name, title), (now, chosen, tab) in MOVED.items():
        if page.name == name and asked in {one.strings.get(title, title) for one in languages().values()}:
            other = page_of(now)
            kept = {key: value for key, value in st.query_params.to_dict().items() if key != page.tabs_key}
            st.switch_page(other.path, query_params=kept | chosen | {other.tabs_key: tr(tab)})


def short_title(kind: str) -> str:
    """ "Encoder self" for "Encoder self-attention"; any other text as it is."""
    return kind.removesuffix("-attention")


def name_step(step: str) -> str:
    """ "0 feed-forward" for "0 feed_forward", as older links call it; any other text as it is."""
    layer, _, name = step.partition(" ")
    return f"{layer} {SUBLAYER_TITLES[name]}" if name in SUBLAYER_TITLES else step


def drop_non_finite_numbers() -> list[str]:
    """Remove parameters such as `inf`, or hundreds of digits, from the URL; returns a sentence for each."""
    found = [name for name in st.query_params if name not in TEXTS and _non_finite(st.query_params[name])]
    if dropped := [name for name in found if _write(name, None)]:
        st.session_state[DROPPED] = [
            tr("The link asks for a {name} that does not exist; another is shown instead.", name=name)
            for name in dropped
        ]
        # Streamlit keeps the URL's first values beside the parameters; only another run forgets them.
        st.rerun()
    return st.session_state.pop(DROPPED, [])


def _write(name: str, value: str | None) -> bool:
    """Change a parameter of the URL, or remove it; False if it belongs to a control that is there already.

    Such a control has its value, and lets nobody else write. The browser's Back leads there: to an address from before
    it was mended, in the same session.
    """
    try:
        if value is None:
            del st.query_params[name]
        else:
            st.query_params[name] = value
    except StreamlitAPIException:
        return False
    return True


def _non_finite(text: str) -> bool:
    try:
        return not isfinite(float(text))
    except ValueError:
        return False
