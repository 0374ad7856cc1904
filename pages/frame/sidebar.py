"""The sidebar: what to translate, where to look, and the temperature. The same on every page.

app.py draws it, so its widgets are the same ones on every page and keep their values; each is bound to
the URL, so a link brings them along.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass

import streamlit as st

from model.checkpoints.devices import available_devices
from model.checkpoints.store import DEFAULT_CHECKPOINT, CheckpointError, available_checkpoints
from model.checkpoints.translator import Translator
from model.interventions import AttentionTemperature
from pages.compute.runs import Request, open_translator, run
from pages.frame.examples import example_menu
from pages.frame.fields import (
    DEFAULTS,
    KINDS,
    SCOPES,
    TARGETS,
    TAUS,
    choice_field,
    drop_impossible,
    select_field,
    take_place,
    text_field,
)
from pages.frame.link_and_reset import link_and_reset
from pages.frame.shortcuts import head_keys
from pages.frame.tour import watch
from pages.frame.url import drop_endless_numbers


@dataclass(frozen=True)
class Inputs:
    """What the sidebar says."""

    translator: Translator | None
    """None: `problem` says why the checkpoint did not open"""
    problem: str
    notes: tuple[str, ...]
    """what the URL asked for in vain"""
    source: str
    target: str
    """beam, greedy or typed"""
    typed: str
    kind: str
    layer: int
    head: int
    tau: float
    scope: str


_current: ContextVar[Inputs | None] = ContextVar("inputs", default=None)


@contextmanager
def shared_inputs() -> Iterator[None]:
    """Draw the sidebar, and let the page that runs in this block read it."""
    inputs = _sidebar()
    watch(inputs.source, (inputs.kind, inputs.layer, inputs.head), inputs.tau)
    token = _current.set(inputs)
    try:
        yield
    finally:
        _current.reset(token)


def current_inputs() -> Inputs:
    """What the sidebar says; a page that runs without app.py gets a sidebar of its own."""
    return _current.get() or _sidebar()


def framed() -> bool:
    """Whether app.py is around the page, and so the menu."""
    return _current.get() is not None


def request(inputs: Inputs) -> Request:
    """The run that the sidebar asks for."""
    return Request(
        source=inputs.source,
        target=inputs.typed if inputs.target == "typed" else None,
        beam_size=1 if inputs.target == "greedy" else 4,
        interventions=_interventions(inputs),
    )


def _interventions(inputs: Inputs) -> tuple[AttentionTemperature, ...]:
    if inputs.tau == 1:
        return ()
    address = {
        "head": {"kind": inputs.kind, "layer": inputs.layer, "head": inputs.head},
        "layer": {"kind": inputs.kind, "layer": inputs.layer},
        "everywhere": {},
    }[inputs.scope]
    return (AttentionTemperature(inputs.tau, **address),)


def _sidebar() -> Inputs:
    notes = drop_endless_numbers()
    take_place()
    with st.sidebar:
        st.markdown("#### Attention Explorer")
        source = text_field("Source sentence, English", "source", "Type an English sentence")
        examples = st.container()
        target, typed = _target(notes)
        look = st.container()
        checkpoint, device = _engine(notes)
        translator, problem = _open(checkpoint, device)
        with examples:
            notes += filter(None, [example_menu(checkpoint)])
        with look:
            kind, layer, head = _place(translator, notes)
            tau, scope = _temperature(notes)
        link_and_reset()
    return Inputs(translator, problem, tuple(notes), source, target, typed, kind, layer, head, tau, scope)


def _open(checkpoint: str, device: str) -> tuple[Translator | None, str]:
    try:
        return open_translator(checkpoint, device), ""
    except CheckpointError as error:
        return None, str(error)


def _target(notes: list[str]) -> tuple[str, str]:
    target = choice_field("Target, German", "target", TARGETS, notes, on_change=_offer_own_translation)
    if target != "typed":
        return target, ""
    return target, text_field("Your own translation", "typed", "Type a German sentence")


def _offer_own_translation() -> None:
    """Somebody who starts to type a target begins with the model's own, and changes that."""
    state = st.session_state
    if state["target"] == "typed" and not state.get("typed"):
        # What is wrong with the source or the checkpoint, the page itself is about to say.
        with suppress(ValueError):
            translator = open_translator(
                state.get("checkpoint") or DEFAULT_CHECKPOINT, state.get("device") or available_devices()[0]
            )
            state["typed"] = run(translator, Request(translator.truncate(state["source"]), None, 4, ())).translation


def _engine(notes: list[str]) -> tuple[str, str]:
    checkpoints, devices = available_checkpoints() or [DEFAULT_CHECKPOINT], available_devices()
    checkpoint = select_field("Checkpoint", "checkpoint", checkpoints, notes)
    if len(devices) > 1:
        return checkpoint, select_field("Runs on", "device", devices, notes)
    st.caption(f"Runs on: {devices[0]}")
    return checkpoint, devices[0]


def _place(translator: Translator | None, notes: list[str]) -> tuple[str, int, int]:
    kinds = {kind.name: kind for kind in translator.kinds} if translator else {}
    titles = {name: kind.title for name, kind in kinds.items()} or KINDS
    drop_impossible("kind", titles, notes)
    name = st.radio("Attention", list(titles), format_func=titles.__getitem__, key="kind", bind="query-params")
    name = name or next(iter(titles))
    layers, heads = (kinds[name].layers, kinds[name].heads) if kinds else ((0,), 1)
    layer = choice_field("Layer", "layer", {i: str(i) for i in layers}, notes)
    head = choice_field("Head", "head", {i: str(i) for i in range(heads)}, notes)
    head_keys(layer, head, len(layers), heads)
    return name, layer, head


def _temperature(notes: list[str]) -> tuple[float, str]:
    drop_impossible("tau", {tau: f"{tau:g}" for tau in TAUS}, notes)
    tau = st.select_slider(
        "Attention temperature τ",
        TAUS,
        value=DEFAULTS["tau"],
        format_func=lambda tau: f"{tau:g}",
        key="tau",
        bind="query-params",
        help="softmax(x / τ): below 1 sharper, above 1 flatter, 1 as trained. The model runs again with it.",
    )
    return tau, choice_field("Temperature acts on", "scope", SCOPES, notes)
