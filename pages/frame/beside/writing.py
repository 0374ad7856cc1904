"""Continue a text above its views: how the model writes, what it wrote, a reply in a chat, and one word in one head."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from model.checkpoints.chat import whole_characters, write_turns
from model.generation.sampling import Sampling
from model.language import later, tr
from model.run import Run, decode
from model.trace import Turn
from pages.frame.render import show_view
from pages.views import Offer
from pages.views.explore.translate import explore
from pages.views.model.decoding import LARGEST_SEED, SEED, TEMPERATURE, TOP_K, TOP_P
from pages.widgets.controls import choice, draw, value_of
from viz import html

REPLY = "reply"
"""key of the box below a chat"""
WAYS = {"greedy": later("The most probable token each time"), "sample": later("Draw each token")}


def write_on(run: Run) -> Run:
    """Choose how the model writes; shows the run that was written so, explores one of its words, and returns it."""
    run = _choose_continuation(run)
    if turns := run.trace.streams["decoder"].tokens.turns:
        _show_chat(turns, run.trace.written)
    else:
        st.html(html.continued(run.trace.source, run.trace.written, run.trace.next_tokens, run.kind))
    show_view(run, explore)
    return run


def _choose_continuation(run: Run) -> Run:
    way = choice(Offer(tr("The model writes"), {one: tr(label) for one, label in WAYS.items()}), "writing")
    if run.request.continuation is None or way == "greedy":
        return run
    sampling, seed = _choose_sampling(run)
    continuation = replace(run.request.continuation, sampling=sampling, seed=seed)
    request = replace(run.request, continuation=continuation)
    return replace(run, request=request, trace=run.compute(decode, run.opened, request))


def _choose_sampling(run: Run) -> tuple[Sampling, int]:
    """Temperature, top-k, top-p and the seed, as on Decoding."""
    *places, last = st.columns([3, 2, 3, 2, 2], vertical_alignment="bottom")
    controls = zip((TEMPERATURE, TOP_K, TOP_P, SEED), places, strict=True)
    *how, seed = [draw(run, control, place) for control, place in controls]
    last.button(tr("Sample again"), icon=":material/casino:", on_click=_next_seed, width="stretch")
    return Sampling(*how), seed


def _next_seed() -> None:
    st.session_state[SEED.key] = ((value_of(SEED.key) or 0) + 1) % (LARGEST_SEED + 1)


def _show_chat(turns: Sequence[Turn], answer: str) -> None:
    """The turns of a chat with the model's answer, and a box for what the user says next."""
    st.html(html.chat([(turn.role, turn.text) for turn in turns], answer))
    if not answer.strip():
        st.caption(tr("The model wrote no answer, so there is nothing to reply to."))
        return
    with st.container():  # in a container the box stands here, not at the foot of the window
        st.chat_input(tr("Reply"), key=REPLY, on_submit=_reply, args=(turns, answer))


def _reply(turns: Sequence[Turn], answer: str) -> None:
    """Before the next run: what was said so far becomes earlier turns, and the reply the message."""
    state = st.session_state
    state["turns"] = write_turns((*turns, Turn("assistant", whole_characters(answer))))
    state["source"] = state[REPLY]
