"""What if, tab "Force a prefix": replace a token of the translation and let the model continue from there."""

import re
from functools import partial

import streamlit as st

from model.analysis import tab_arrays as tab
from model.checkpoints.translator import Translator
from model.generation.search import beam_search
from model.generation.steps import Steps
from model.interventions import Intervention
from model.network.config import BOS, EOS, PAD, UNK
from model.trace import Trace
from pages.compute.cache import shared_result
from pages.compute.view import View
from pages.widgets.chart import chart, clicked_point
from pages.widgets.controls import number
from pages.widgets.explain import show_code
from pages.widgets.export import export_tab
from pages.widgets.glossary import define
from pages.widgets.snippet import Call
from viz.charts.translate import alternative_bars, certainty_bars, rank_candidates
from viz.html import chips, word_diff
from viz.latex import signed
from viz.theme import DECODER, VALUE
from viz.tokens import labels

PART, FIELD, AT = "Force a prefix", "prefix", "prefix_at"
"""title of the tab; in session and URL the forced ids, as "12-34", and the position"""
HERE = "force_at"
"""URL parameter of links inside the app: begin at this position, with nothing forced"""
LONGEST = 2000
"""characters of the ids that a link may name"""
HISTORY, OF, EDITION = "prefix-history", "prefix-of", "prefix-edition"
CERTAINTY = "prefix-certainty"


def show_prefix(view: View) -> None:
    """The translation, the alternatives at each position, and the continuation after another choice."""
    st.markdown(
        "Choose a position and another word for it: everything before it stays, the new word is **forced**, and "
        "the model continues decoding from there. Repeat as often as you like."
    )
    _show(view, view.beam_size)
    show_code(beam_search, Steps)


@st.fragment
def _show(view: View, beam_size: int) -> None:
    forced, trace = _run(view, _field(view), beam_size)
    _show_result(view, trace, forced, beam_size)
    left, right = st.columns(2)
    with left:
        position = _position(trace)
        written = trace.target_probabilities
        chart(
            certainty_bars(trace.next_tokens, written, position).draw(),
            key=CERTAINTY,
            on_select=_position_clicked,
            alt="Probability of each token of the translation; a click chooses its position",
        )
        st.caption("Each token's probability, given all before it. Click on a bar to choose its position.")
    with right:
        _show_alternatives(view.translator, trace, position, float(written[position]))
    export_tab(view, "forced-prefix", Call(tab.run_tokens, trace))


def _field(view: View) -> tuple[int, ...]:
    """The forced ids, from the session and the link; a new sentence starts without any."""
    state, case = st.session_state, (view.trace.checkpoint_hash, view.trace.src_ids)
    if FIELD not in state:
        state[FIELD] = st.query_params.get(FIELD, "")[:LONGEST]
    asked = st.query_params.pop(HERE, "")
    if asked or state.setdefault(OF, case) != case:
        state[OF] = case
        _write((), keep=False)
    if re.fullmatch("[0-9]{1,4}", asked):
        state[AT] = int(asked)
    _to_link()
    forced = bool(state[FIELD])
    with st.container(horizontal=True):
        st.button("Undo", icon=":material/undo:", key="prefix_undo", on_click=_undo, disabled=not forced)
        st.button("Reset", icon=":material/restart_alt:", key="prefix_reset", on_click=_write, disabled=not forced)
    parts = state[FIELD].replace(",", " ").replace("-", " ").split()
    if all(part.isascii() and part.isdigit() and len(part) < 9 for part in parts):
        return tuple(map(int, parts))
    st.info("The prefix in the link cannot be read; nothing is forced.", icon=":material/info:")
    return ()


def _run(view: View, forced: tuple[int, ...], beam_size: int) -> tuple[tuple[int, ...], Trace]:
    """The run that continues the prefix; if that fails, the original run, and a message that says why."""
    if forced:
        try:
            with st.spinner("Decoding from there …", show_time=True):
                return forced, _continued(
                    view.translator, view.trace.source, forced, beam_size, view.trace.interventions
                )
        except ValueError as error:
            st.info("This prefix cannot be forced; showing the translation without it.", icon=":material/info:")
            st.text(str(error))
    return (), view.trace


def _show_result(view: View, trace: Trace, forced: tuple[int, ...], beam_size: int) -> None:
    before, after = view.trace.log_probability, trace.log_probability
    with st.container(border=True):
        st.html(word_diff(view.trace.translation, trace.translation))
        shown = {
            "log p, nothing forced": signed(before, ".3f"),
            "log p, now": signed(after, ".3f"),
            "now − nothing forced": signed(after - before, "+.3f"),
        }
        for place, (name, value) in zip(st.columns(3), shown.items(), strict=True):
            place.metric(name, value)
        written = trace.target_probabilities
        parts = {"Forced": (slice(len(forced)), VALUE), "Decoded": (slice(len(forced), None), DECODER)}
        for title, (part, hue) in parts.items():
            if trace.next_ids[part]:
                st.html(chips(title, trace.next_tokens[part], trace.next_ids[part], hue, written[part]))
        how = "greedy decoding" if beam_size == 1 else f"a beam of {beam_size}"
        st.caption(
            f"log p is summed over all tokens, in nats, over the whole vocabulary. The continuation was found by {how}."
            if forced
            else "Nothing is forced yet: this is the page's own target.",
            help=define("nats", "beam"),
        )


def _position(trace: Trace) -> int:
    last = len(trace.next_ids) - 1
    return number(f"Position, 0 to {last}", (0, last), 0, AT, width=200)


def _position_clicked() -> None:
    if point := clicked_point(CERTAINTY):
        st.session_state[AT] = point["point_index"]


def _show_alternatives(translator: Translator, trace: Trace, position: int, written: float) -> None:
    """The most probable tokens at the position; a click on one, or the button with any word, forces it."""
    here = (trace.next_tokens[position], trace.next_ids[position], written)
    names, shares, chosen = rank_candidates(trace.candidates[position], here)
    ids = [candidate.id for candidate in trace.candidates[position]]
    ids = ids if here[1] in ids else [*ids, here[1]]
    stem, state = trace.next_ids[:position], st.session_state
    shown = dict(zip(ids, zip(labels(names), shares, strict=True), strict=True))
    options = [token for token in ids if token != here[1] and token not in (PAD, UNK, BOS)]
    # New keys after each change: a widget with its old state would show the previous choice and not report a new one.
    case = f"{state.get(EDITION, 0)}-{position}"
    pick, go = st.columns([3, 1], vertical_alignment="bottom")
    word = pick.selectbox(
        "Replace it by",
        options,
        format_func=lambda i: "{} ({:.2%})".format(*shown[i]) if i in shown else str(i),
        key=f"prefix-choice-{case}",
        accept_new_options=True,
        help="One of the most probable tokens, or any word that you type. With a hyphen before it, it continues the "
        "word before.",
    )
    typed = "" if isinstance(word, int) else translator.prepare(word or "").strip()
    forced = (word,) if isinstance(word, int) else tuple(translator.tokenizer.encode_next(typed))
    go.button("Force", key="prefix_force", on_click=_force, args=(stem, forced), type="primary", width="stretch")
    key = f"prefix-alternatives-{case}"
    figure = alternative_bars(names, shares, chosen, trace.logits.shape[-1])
    with st.container(key="prefix-alternatives"):
        chart(figure, key=key, on_select=partial(_clicked, key, stem, ids), alt="The most probable tokens here")
    st.caption(
        "Bold: the token in the translation. Click on another bar to force that token. The last bar is the rest of "
        "the vocabulary."
    )


def _clicked(key: str, stem: tuple[int, ...], ids: list[int]) -> None:
    point = clicked_point(key)
    if point and point["point_index"] < len(ids):
        _force(stem, (ids[point["point_index"]],))


def _force(stem: tuple[int, ...], word: tuple[int, ...]) -> None:
    if not word or {PAD, UNK, BOS}.intersection(word):
        return
    _write((*stem, *word))
    st.session_state[AT] = len(stem) + len(word)


def _write(forced: tuple[int, ...] = (), keep: bool = True) -> None:
    """Force these ids; with `keep`, undo brings the previous ones back."""
    state = st.session_state
    state[HISTORY] = [*state.get(HISTORY, []), state.get(FIELD) or ""] if keep else []
    state[FIELD] = "-".join(map(str, forced))
    state[EDITION] = state.get(EDITION, 0) + 1
    _to_link()


def _to_link() -> None:
    """Write the forced ids to the URL."""
    if text := st.session_state[FIELD]:
        st.query_params[FIELD] = text
    else:
        st.query_params.pop(FIELD, "")


def _undo() -> None:
    *earlier, last = st.session_state.get(HISTORY) or [""]
    _write(keep=False)
    st.session_state[HISTORY], st.session_state[FIELD] = earlier, last
    _to_link()


@shared_result()
def _continued(
    translator: Translator,
    source: str,
    forced: tuple[int, ...],
    beam_size: int,
    interventions: tuple[Intervention, ...],
) -> Trace:
    """The finished translation that begins with `forced`; nothing is decoded if that ends with </s>."""
    ended = forced[-1] == EOS
    found = translator.continue_from(source, forced[:-1] if ended else forced, beam_size, interventions)
    return translator.trace_ids(source, (forced if ended else found.tokens)[: translator.token_limit], interventions)
