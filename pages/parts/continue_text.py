"""Continue a text: how the model writes, and the text's probability."""

from dataclasses import replace

import streamlit as st

from model.trace import Trace
from pages.compute.runs import run
from pages.compute.view import View
from pages.parts.sampling import choose_sampling
from pages.widgets.controls import choice
from pages.widgets.glossary import define

WAYS = {"greedy": "The most probable token each time", "sample": "Draw each token"}


def choose_continuation(view: View) -> View:
    """Choose how the model writes; the view of a run that was written so."""
    way = choice("The model writes", WAYS, "writing")
    if view.request.continuation is None or way == "greedy":
        return view
    sampling, seed = choose_sampling(view.trace.logits.shape[-1])
    continuation = replace(view.request.continuation, sampling=sampling, seed=seed)
    request = replace(view.request, continuation=continuation)
    return replace(view, request=request, trace=run(view.translator, request))


def say_probability(trace: Trace) -> None:
    """log p of the text and of its continuation, in nats, and the model's surprise a token."""
    n_given = trace.first_written
    if roles := next(iter(trace.streams.values())).tokens.roles:
        counts = {role: roles.count(role) for role in ("template", "user", "assistant")}
        st.caption(
            f"The chat template of the tokenizer wraps the message: of the {len(roles)} tokens that the model reads, "
            f"{counts['user']} are the user's, {counts['assistant']} the assistant's, and {counts['template']} the "
            "template's. **Tokens and embeddings** says whose each one is."
        )
    logs = trace.target_log_probabilities
    given = f", {-logs[:n_given].mean():.2f} a token" if n_given else ", because no token comes before the first"
    st.caption(
        f"log p of the {n_given} tokens that were given: {logs[:n_given].sum():.2f} nats{given}; of the "
        f"{len(logs) - n_given} that follow, the end token included: {logs[n_given:].sum():.2f}.",
        help=define("nats"),
    )
