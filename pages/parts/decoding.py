"""Decoding: the chosen step, and the cached searches that the tabs share."""

import streamlit as st

from model.checkpoints.translator import Translator
from model.generation.beam_tree import BeamTree, search_again
from model.generation.sampling import SampledText, Sampling, sample_again, two_temperatures
from model.generation.step_cost import time_steps
from model.trace import Array, Trace
from pages.compute.cache import shared_result
from pages.compute.view import View
from pages.parts.translate import Alignment, choose_alignment
from pages.widgets.chart import chart
from pages.widgets.controls import slider
from pages.widgets.glossary import define
from viz.charts.decoding import progress_line, source_weight_bars
from viz.charts.translate import alternative_bars, rank_candidates
from viz.tokens import decoder_rows

STEP = "decoding-step"


def choose_step(view: View) -> int:
    """Choose the step, from 0; one beyond the end of the translation becomes the last."""
    last = len(view.trace.next_ids) - 1
    asked = st.query_params.get(STEP, "0")
    if STEP not in st.session_state and asked not in map(str, range(last + 1)):
        st.info(f"The link asks for a step that is not there; they are 0 to {last}.", icon=":material/info:")
    if last == 0:
        st.caption("This translation has a single step, 0.")
        step = 0
    else:
        step = slider(f"Step, 0 to {last}", (0, last), 0, STEP)
    st.html(progress_line(view.trace.next_tokens, step))
    return step


def show_step(view: View, step: int) -> tuple[object, Array, Alignment]:
    """Draw the next-token distribution and the cross-attention of `step`; returns the figure and both data."""
    trace = view.trace
    probabilities = trace.probabilities
    alignment = choose_alignment(view)
    left, right = st.columns(2, gap="large")
    with right:
        figure = source_weight_bars(alignment.weights[step], trace.src_tokens, alignment.what)
        chart(figure, key="decoding-source", alt=alignment.what)
    with left:
        st.text(f"Step {step}: the decoder {decoder_rows(trace.tgt_tokens, trace.next_tokens)[step]}.")
        here = (trace.next_tokens[step], trace.next_ids[step], probabilities[step, trace.next_ids[step]])
        names, shares, chosen = rank_candidates(trace.candidates[step], here)
        figure = alternative_bars(names, shares, chosen, trace.logits.shape[-1])
        chart(figure, key="decoding-next", alt=f"The most probable next tokens at step {step}")
    first = trace.candidates[step][0]
    note = "Bold: the token in the translation"
    note += ", which is the most probable one" if first.id == here[1] else ", **not** the most probable one"
    st.caption(
        f"{note}. Hatched: all other tokens of the vocabulary combined. The row is read from one teacher-forced run "
        "over the finished translation; up to rounding it equals this step of cached decoding.",
        help=define("teacher-forced"),
    )
    return figure, probabilities, alignment


@shared_result("Searching …")
def run_beam_search(translator: Translator, trace: Trace, beam_size: int) -> BeamTree:
    """The complete beam search of this source, with the run's interventions."""
    return search_again(translator.model, trace, beam_size)


@shared_result("Sampling …")
def draw_samples(
    translator: Translator, trace: Trace, sampling: Sampling, seed: int, n: int
) -> tuple[SampledText, ...]:
    """Sampled translations of this source, with the run's interventions."""
    return sample_again(translator.model, trace, sampling, seed, n)


@shared_result("Rerunning the model …")
def rerun_at_temperature(translator: Translator, trace: Trace, step: int, temperature: float) -> dict[str, Array]:
    """The distributions of one step under two temperatures."""
    return two_temperatures(translator.model, trace, step, temperature)


@shared_result()
def time_decoding(
    translator: Translator, src_ids: tuple[int, ...], steps: int, use_cache: bool, repetition: int
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
