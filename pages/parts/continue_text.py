"""Continue a text: how the model writes, and the text's probability."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from model.checkpoints.chat import whole_characters, write_turns
from model.generation.sampling import Sampling
from model.trace import Trace, Turn
from pages.compute.runs import run
from pages.compute.view import View
from pages.frame.render import choose
from pages.views.decoding import LARGEST_SEED, SEED, TEMPERATURE, TOP_K, TOP_P
from pages.widgets.controls import choice, value_of
from pages.widgets.glossary import define
from viz import html

REPLY = "reply"
"""key of the box below a chat"""
WHOSE = {
    "system": "of the system message",
    "user": "of the user",
    "assistant": "of the assistant",
    "template": "of the template",
    "generation prompt": "of the generation prompt, with which the template begins the answer",
}
"""role -> whose its tokens are"""
WAYS = {"greedy": "The most probable token each time", "sample": "Draw each token"}


def choose_continuation(view: View) -> View:
    """Choose how the model writes; the view of a run that was written so."""
    way = choice("The model writes", WAYS, "writing")
    if view.request.continuation is None or way == "greedy":
        return view
    sampling, seed = _choose_sampling(view)
    continuation = replace(view.request.continuation, sampling=sampling, seed=seed)
    request = replace(view.request, continuation=continuation)
    return replace(view, request=request, trace=run(view.translator, request))


def _choose_sampling(view: View) -> tuple[Sampling, int]:
    """Temperature, top-k, top-p and the seed, as on Decoding."""
    *places, last = st.columns([3, 2, 3, 2, 2], vertical_alignment="bottom")
    controls = zip((TEMPERATURE, TOP_K, TOP_P, SEED), places, strict=True)
    *how, seed = [choose(view, control, place) for control, place in controls]
    last.button("Sample again", icon=":material/casino:", on_click=_next_seed, width="stretch")
    return Sampling(*how), seed


def _next_seed() -> None:
    st.session_state[SEED.key] = ((value_of(SEED.key) or 0) + 1) % (LARGEST_SEED + 1)


def show_chat(turns: Sequence[Turn], answer: str) -> None:
    """The turns of a chat with the model's answer, and a box for what the user says next."""
    st.html(html.chat([(turn.role, turn.text) for turn in turns], answer))
    if not answer.strip():
        st.caption("The model wrote no answer, so there is nothing to reply to.")
        return
    with st.container():  # in a container the box stands here, not at the foot of the window
        st.chat_input("Reply", key=REPLY, on_submit=_reply, args=(turns, answer))


def _reply(turns: Sequence[Turn], answer: str) -> None:
    """Before the next run: what was said so far becomes earlier turns, and the reply the message."""
    state = st.session_state
    state["turns"] = write_turns((*turns, Turn("assistant", whole_characters(answer))))
    state["source"] = state[REPLY]


def say_probability(trace: Trace) -> None:
    """log p of the text and of its continuation, in nats, and the model's surprise a token."""
    n_given = trace.first_written
    if roles := trace.streams["decoder"].tokens.roles:
        counts = [f"{roles.count(role)} {whose}" for role, whose in WHOSE.items() if role in roles]
        st.caption(
            f"The chat template of the tokenizer makes one text of the turns. The model reads {len(roles)} tokens: "
            f"{', '.join(counts)}. **Tokens and embeddings** says whose each one is."
        )
    logs = trace.target_log_probabilities
    given = f", {-logs[:n_given].mean():.2f} a token" if n_given else ", because no token comes before the first"
    st.caption(
        f"log p of the {n_given} tokens that were given: {logs[:n_given].sum():.2f} nats{given}; of the "
        f"{len(logs) - n_given} that follow, the end token included: {logs[n_given:].sum():.2f}.",
        help=define("nats"),
    )
