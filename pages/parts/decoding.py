"""Decoding: the words for a model's texts, the chosen step, and the cached searches that the tabs share."""

from typing import NamedTuple

import streamlit as st

from model.analysis.view_arrays import aligning_kind
from model.checkpoints.checkpoint import Checkpoint
from model.generation.beam_tree import BeamTree, search_again
from model.generation.sampling import SampledText, Sampling, sample_again, two_temperatures
from model.generation.step_cost import time_steps
from model.generation.steps import EXTRA_LENGTH
from model.trace import Array, Trace
from pages.compute.cache import shared_result
from pages.compute.view import View
from pages.parts.translate import Alignment, choose_alignment
from pages.widgets.chart import chart
from pages.widgets.controls import slider
from pages.widgets.glossary import define
from viz.charts.decoding import key_weight_bars, progress_line
from viz.charts.translate import alternative_bars, rank_candidates
from viz.tokens import decoder_rows

STEP = "decoding-step"


class Wording(NamedTuple):
    """What a model's texts are called on this page."""

    given: str
    written: str
    hypothesis: str


def wording(trace: Trace) -> Wording:
    """The words for a translator, or for a language model."""
    if trace.src_tokens:
        return Wording("source", "translation", "sentence")
    return Wording("prompt", "continuation", "continuation")


def new_token_limit(view: View) -> tuple[int, ...]:
    """The last argument of a search from a prompt: at most as many tokens as the sidebar asks for, or 50.

    Empty for a translator: there the limit follows from the source.
    """
    if view.trace.src_tokens:
        return ()
    asked = view.request.continuation
    room = view.translator.token_limit - view.trace.first_written - 1
    return (max(1, min(asked.max_new_tokens if asked else EXTRA_LENGTH, room)),)


def choose_step(view: View) -> int:
    """Choose the step, from 0; one beyond the end of the text becomes the last."""
    trace, words = view.trace, wording(view.trace)
    last = len(trace.next_ids) - 1 - trace.first_written
    asked = st.query_params.get(STEP, "0")
    if STEP not in st.session_state and asked not in map(str, range(last + 1)):
        st.info(f"The link asks for a step that is not there; they are 0 to {last}.", icon=":material/info:")
    if last == 0:
        st.caption(f"This {words.written} has a single step, 0.")
        step = 0
    else:
        step = slider(f"Step, 0 to {last}", (0, last), 0, STEP)
    st.html(progress_line(trace.next_tokens, step, trace.first_written, words.written))
    for limit in new_token_limit(view):
        st.caption(
            f"Outlined: the prompt. Greedy, Beam and Sampling below write on from it: until the end token, or "
            f"{limit} token{'s' * (limit > 1)} (“New tokens” in the sidebar)."
        )
    return step


def show_step(view: View, step: int) -> tuple[object, Array, Alignment]:
    """Draw the next-token distribution and the attention weights of `step`; returns the figure and both data."""
    trace, words = view.trace, wording(view.trace)
    row, crosses = trace.first_written + step, bool(trace.src_tokens)
    probabilities = trace.probabilities
    alignment = choose_alignment(view)
    left, right = st.columns(2, gap="large")
    with right:
        keys = trace.src_tokens or trace.tgt_tokens[: last_visible_key(trace, alignment, row) + 1]
        figure = key_weight_bars(alignment.weights[row, : len(keys)], keys, alignment.what, crosses=crosses)
        chart(figure, key="decoding-source", alt=alignment.what)
    with left:
        st.text(f"Step {step}: the decoder {decoder_rows(trace.tgt_tokens, trace.next_tokens)[row]}.")
        here = (trace.next_tokens[row], trace.next_ids[row], probabilities[row, trace.next_ids[row]])
        names, shares, chosen = rank_candidates(trace.candidates[row], here)
        figure = alternative_bars(names, shares, chosen, trace.logits.shape[-1])
        chart(figure, key="decoding-next", alt=f"The most probable next tokens at step {step}")
    first = trace.candidates[row][0]
    note = f"Bold: the token in the {words.written}"
    note += ", which is the most probable one" if first.id == here[1] else ", **not** the most probable one"
    if not crosses and row == len(trace.next_ids) - 1:
        note += ": the run ends its text here, whatever the model would have written"
    cached = all(change.position_free for change in trace.interventions)
    same = "; up to rounding it equals this step of cached decoding" if cached else ""
    st.caption(
        f"{note}. Hatched: all other tokens of the vocabulary combined. The row is read from one teacher-forced run "
        f"over the finished {words.written if crosses else 'text'}{same}.",
        help=define("teacher-forced"),
    )
    return figure, probabilities, alignment


def last_visible_key(trace: Trace, alignment: Alignment, row: int) -> int:
    """Position of the last token that a row of self-attention may attend to."""
    mask = trace.attention(aligning_kind(trace), alignment.layer).mask[:, row]
    return int(mask.any(axis=0).nonzero()[0].max(initial=row))


@shared_result("Searching …")
def run_beam_search(translator: Checkpoint, trace: Trace, beam_size: int, *limit: int) -> BeamTree:
    """The complete beam search from this source or prompt, with the run's interventions."""
    return search_again(translator.model, trace, beam_size, *limit)


@shared_result("Sampling …")
def draw_samples(
    translator: Checkpoint, trace: Trace, sampling: Sampling, seed: int, n: int, *limit: int
) -> tuple[SampledText, ...]:
    """Texts sampled from this source or prompt, with the run's interventions."""
    return sample_again(translator.model, trace, sampling, seed, n, *limit)


@shared_result("Rerunning the model …")
def rerun_at_temperature(translator: Checkpoint, trace: Trace, row: int, temperature: float) -> dict[str, Array]:
    """The distributions of one row under two temperatures."""
    return two_temperatures(translator.model, trace, row, temperature)


@shared_result()
def time_decoding(
    translator: Checkpoint, src_ids: tuple[int, ...], steps: int, use_cache: bool, repetition: int
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Tokens, and seconds per step of one decoding; each repetition is measured once on this machine."""
    del repetition  # only part of the cache key: each repetition is a measurement of its own
    return time_steps(translator.model, src_ids, steps, use_cache)


def text_of(view: View, tokens: tuple[int, ...]) -> str:
    """Token ids as text."""
    return view.translator.tokenizer.decode(list(tokens))


def pieces_of(view: View, tokens: tuple[int, ...]) -> list[str]:
    """Token ids as tokens."""
    return view.translator.tokenizer.tokens(list(tokens))
