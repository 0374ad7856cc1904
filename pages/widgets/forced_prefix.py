"""What if, tab "Force a prefix": the words that a translation begins with, chosen one after another, with undo."""

import re
from typing import Any

import streamlit as st

from model.language import ENGLISH, language, tr, tr_error
from model.run import Run
from model.trace import Trace
from pages.views import Control, Offer
from pages.views.experiment.what_if import AT, FORBIDDEN, PREFIX, join_ids, with_prefix
from pages.widgets.controls import number
from viz.special.translate import rank_candidates
from viz.tokens import labels

HERE = "force_at"
"""URL parameter of links inside the app: begin at this position, with nothing forced"""
LONGEST = 2000
"""characters of the ids that a link may name"""
HISTORY, LAST, OF = "prefix-history", "prefix-last", "prefix-of"
"""in the session: earlier prefixes, the one drawn last, and the sentence that it is of"""


def build_prefix(run: Run) -> dict[Control, Any]:
    """Draw what chooses a position and another word for it.

    Returns:
        the forced ids and the position; if the ids cannot be forced, the page says why and nothing is.
    """
    prefix = _current_prefix(run)
    forced = bool(prefix)
    place, pick, go = st.columns([2, 4, 4], vertical_alignment="bottom")
    try:
        with st.spinner(tr("Decoding from there …"), show_time=language() is ENGLISH):
            trace = with_prefix(run, prefix)
    except ValueError as error:
        st.info(tr("This prefix cannot be forced; showing the translation without it."), icon=":material/info:")
        st.text(tr_error(error))
        prefix, trace = "", run.trace
    last = len(trace.next_ids) - 1
    position = number(Offer(tr("Position, 0 to {last}", last=last), limits=(0, last)), AT.key, place)
    word = _choose_word(run, trace, position, pick)
    with go.container(horizontal=True):
        arguments = (*trace.next_ids[:position], *word), len(word) > 0 and not FORBIDDEN.intersection(word)
        st.button(tr("Force"), key="prefix_force", on_click=_force, args=arguments, type="primary")
        st.button(tr("Undo"), icon=":material/undo:", key="prefix_undo", on_click=_undo, disabled=not forced)
        st.button(tr("Reset"), icon=":material/restart_alt:", key="prefix_reset", on_click=_force, disabled=not forced)
    return {PREFIX: prefix, AT: position}


def _current_prefix(run: Run) -> str:
    """The forced ids, from the session and the link; a new sentence starts without any."""
    state, case, linked = st.session_state, (run.trace.checkpoint_hash, run.trace.src_ids), PREFIX.key
    if linked not in state:
        state[linked] = st.query_params.get(linked, "")[:LONGEST]
    asked = st.query_params.pop(HERE, "")
    if asked or state.setdefault(OF, case) != case:
        state[OF], state[linked], state[HISTORY] = case, "", []
        state[LAST] = ""
    if re.fullmatch("[0-9]{1,4}", asked):
        state[AT.key] = int(asked)
    # A click on a bar changes the prefix, too: what it was before is known only from the last time.
    if state.setdefault(LAST, state[linked]) != state[linked]:
        state[HISTORY] = [*state.get(HISTORY, []), state[LAST]]
        state[LAST] = state[linked]
    _write(state[linked])
    return state[linked]


def _choose_word(run: Run, trace: Trace, position: int, place: Any) -> tuple[int, ...]:
    """The ids of one of the most probable words at the position, or of any word that is typed."""
    written = trace.next_ids[position]
    here = trace.next_tokens[position], written, float(trace.target_probabilities[position])
    names, shares, _ = rank_candidates(trace.candidates[position], here)
    ids = [candidate.id for candidate in trace.candidates[position]]
    facts = [{"token": name, "share": share} for name, share in zip(labels(names), shares, strict=True)]
    shown = dict(zip(ids if written in ids else [*ids, written], facts, strict=True))
    word = place.selectbox(
        tr("Replace it by"),
        [token for token in shown if token != written and token not in FORBIDDEN],
        format_func=lambda i: tr("{token} ({share:.2%})", **shown[i]) if i in shown else str(i),
        # A new key after each change: with its old state it would show the previous choice and report no new one.
        key=f"prefix-choice-{len(st.session_state.get(HISTORY, []))}-{position}",
        accept_new_options=True,
        help=tr(
            "One of the most probable tokens, or any word that you type. With a hyphen before it, it continues the "
            "word before."
        ),
    )
    if isinstance(word, int):
        return (word,)
    return tuple(run.opened.tokenizer.encode_next(run.opened.prepare(word or "").strip()))


def _force(ids: tuple[int, ...] = (), possible: bool = True) -> None:
    """Begin the text with these ids, unless they are no text."""
    if possible:
        _write(join_ids(ids))
        if ids:
            st.session_state[AT.key] = len(ids)


def _undo() -> None:
    *st.session_state[HISTORY], last = st.session_state.get(HISTORY) or [""]
    st.session_state[LAST] = last
    _write(last)


def _write(prefix: str) -> None:
    """To the session and to the URL, which the sidebar's link copies before this tab is drawn."""
    st.session_state[PREFIX.key] = prefix
    if prefix:
        st.query_params[PREFIX.key] = prefix
    else:
        st.query_params.pop(PREFIX.key, "")
