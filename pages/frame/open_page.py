"""What every page begins with: `view = open_page(__file__)`."""

from dataclasses import dataclass, replace
from pathlib import Path

import streamlit as st

from model.checkpoints.translator import Translator
from model.trace import Attention, Trace
from pages import PAGES, Page
from pages.compute.cache import on_cpu
from pages.compute.runs import run
from pages.frame.menu import route, runs_as_page
from pages.frame.sidebar import KINDS, Inputs, current_inputs, framed, request
from pages.frame.tour import show_tour
from pages.widgets.chart import name_files


@dataclass(frozen=True)
class View:
    """The run that a page shows, and what the person chose to look at."""

    translator: Translator
    trace: Trace
    source: str
    """what was typed; `trace` holds its first sentences if it was too long"""
    kind: str
    """encoder_self, decoder_self or cross"""
    layer: int
    head: int
    tau: float
    """attention temperature, 1 = as trained; at work in `trace`"""
    scope: str
    """where tau is at work: head, layer or everywhere"""
    target: str
    """what `trace` was forced to: the model's own beam or greedy translation, or a typed one"""
    typed: str | None = None
    """the typed one; None: the model found its own"""
    changes: int = 0
    """how many of the trace's interventions, the last ones, were made afterwards, on the same tokens"""

    @property
    def beam_size(self) -> int:
        """Of this page's searches; 1 is greedy."""
        return 1 if self.target == "greedy" else 4

    @property
    def attention(self) -> Attention:
        return self.trace.attention(self.kind, self.layer)


def open_page(file: str) -> View:
    """Draw the frame and the header of the page in `file`, and run the model on what was typed.

    Where there is nothing to show (blank text, text too long, a broken checkpoint) a sentence says
    what to do, and the page ends there.
    """
    if runs_as_page() and not framed():
        route()
    inputs = current_inputs()
    _header(file)
    for note in inputs.notes:
        st.info(note, icon=":material/info:")
    if inputs.translator is None:
        _stop(inputs.problem)
    source, typed = inputs.source, inputs.typed
    inputs = replace(inputs, source=_shown("source", source, inputs), typed=_shown("target", typed, inputs))
    try:
        trace = run(inputs.translator, request(inputs))
    except ValueError as error:
        _stop(str(error))
    name_files(trace.checkpoint, trace.checkpoint_hash)
    if trace.device != inputs.translator.device:
        st.info(
            f"{inputs.translator.device} had too little memory left: this page was computed on the CPU.",
            icon=":material/memory:",
        )
        inputs = replace(inputs, translator=on_cpu(inputs.translator))
    return _view(inputs, trace, source)


def _shown(side: str, text: str, inputs: Inputs) -> str:
    """What fits the views; where that is not all, the page says so."""
    shown = inputs.translator.truncate(text)
    if shown != text and (side == "source" or inputs.target == "typed"):
        st.info(
            f"The {side} has {len(text):,} characters; one run of the model holds "
            f"{inputs.translator.token_limit} tokens. This page shows its beginning, "
            f"{len(shown):,} characters, up to the end of a sentence where there is one.",
            icon=":material/content_cut:",
        )
    return shown


def _view(inputs: Inputs, trace: Trace, source: str) -> View:
    if inputs.tau != 1:
        where = {"head": f"head {inputs.head}", "layer": "all heads", "everywhere": "every attention"}[inputs.scope]
        place = "" if inputs.scope == "everywhere" else f" of {KINDS[inputs.kind].lower()}, layer {inputs.layer}"
        st.info(
            f"Attention temperature τ = {inputs.tau:g} is at work in {where}{place}: "
            f"the model ran again with it{'' if inputs.target == 'typed' else ', and translated again'}.",
            icon=":material/thermostat:",
        )
    place = (inputs.kind, inputs.layer, inputs.head)
    asked = request(inputs)
    return View(inputs.translator, trace, source, *place, inputs.tau, inputs.scope, inputs.target, asked.target)


def _header(file: str) -> None:
    page = page_of(file)
    st.title(page.title, anchor=False)
    st.markdown(page.look_for)
    show_tour(page.path, framed())


def page_of(file: str) -> Page:
    """The entry of PAGES for a page's `__file__`."""
    return next(page for pages in PAGES.values() for page in pages if Path(page.path).name == Path(file).name)


def _stop(sentence: str) -> None:
    """Say what is wrong, as plain text: it may quote what a person typed."""
    with st.container(border=True):
        st.markdown("**Nothing to show yet**")
        st.text(sentence)
    st.stop()
