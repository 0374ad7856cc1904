"""The app's only caches: one model for everybody, the latest runs, and their checks."""

from dataclasses import dataclass

import streamlit as st

from model.checkpoints.devices import settle
from model.checkpoints.store import load_checkpoint
from model.checkpoints.translator import Translator
from model.interventions import Intervention
from model.proof.checks import Check, prove
from model.trace import Trace
from pages.compute.cache import kept


@dataclass(frozen=True)
class Request:
    """All that a run depends on besides the weights."""

    source: str
    target: str | None
    """None: the model finds its own"""
    beam_size: int
    interventions: tuple[Intervention, ...]


def open_translator(checkpoint: str, device: str) -> Translator:
    """The checkpoint on its device, loaded once for all sessions.

    Raises:
        CheckpointError: it is missing or not whole.
    """
    with st.spinner(f"Opening the checkpoint {checkpoint} …"):
        return _translator(checkpoint, device)


def run(translator: Translator, request: Request) -> Trace:
    """Decode and trace; the latest runs are kept and shared.

    Raises:
        ValueError: the text is blank or too long; the sentence says what to do.
    """
    return _trace(translator, request)


def again(translator: Translator, trace: Trace, interventions: tuple[Intervention, ...]) -> Trace:
    """The same tokens, source and target, under other interventions; the latest runs are kept and shared.

    Raises:
        ValueError: an intervention does not fit the model.
    """
    if interventions == trace.interventions:
        return trace
    return _again(translator, trace, interventions)


def prepare(checkpoint: str, device: str, request: Request) -> None:
    """Load, run and check before anybody asks; the next one who does finds it all.

    Raises:
        CheckpointError: the checkpoint is missing or not whole.
    """
    translator = _translator(checkpoint, device)
    _checks(translator, _trace(translator, request))


def check(translator: Translator, trace: Trace) -> tuple[Check, ...]:
    """The proof of one trace, worked out once."""
    return _checks(translator, trace)


def translate(
    translator: Translator, sentences: tuple[str, ...], beam_size: int, interventions: tuple[Intervention, ...]
) -> list[str]:
    """The translation of each sentence, remembered for the next rerun."""
    return _translations(translator, sentences, beam_size, interventions)


def _weights(translator: Translator) -> tuple[str, str]:
    return translator.hash, translator.device


def _run(trace: Trace) -> tuple[object, ...]:
    return trace.checkpoint_hash, trace.device, trace.src_ids, trace.tgt_ids, trace.interventions


@st.cache_resource(max_entries=4, show_spinner=False)
def _translator(checkpoint: str, device: str) -> Translator:
    translator = load_checkpoint(checkpoint, device)
    settle()
    return translator


@kept(max_entries=24, hash_funcs={Translator: _weights}, doing="The model is translating …")
def _trace(translator: Translator, request: Request) -> Trace:
    return translator.trace(request.source, request.target, request.beam_size, request.interventions)


@kept(max_entries=24, hash_funcs={Translator: _weights, Trace: _run}, doing="The changed model is running …")
def _again(translator: Translator, trace: Trace, interventions: tuple[Intervention, ...]) -> Trace:
    return translator.rerun(trace, interventions)


@kept(max_entries=512, hash_funcs={Translator: _weights})
def _translations(
    translator: Translator, sentences: tuple[str, ...], beam_size: int, interventions: tuple[Intervention, ...]
) -> list[str]:
    return translator.translate(sentences, beam_size, interventions=interventions)


@kept(
    max_entries=200,
    hash_funcs={Translator: _weights, Trace: _run},
    doing="Checking the picture against the model …",
)
def _checks(translator: Translator, trace: Trace) -> tuple[Check, ...]:
    return prove(translator, trace)
