"""The sidebar: what to translate, where to look, and the temperature. The same on every page.

app.py draws it, so its widgets are the same ones on every page and keep their values; each is bound to
the URL, so a link brings them along.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from model.checkpoints import CheckpointError, available_checkpoints
from model.devices import available_devices
from model.interventions import AttentionTemperature
from model.translator import Translator
from pages.components.runs import Request, open_translator

EXAMPLES = (
    "Two young men are cooking in a kitchen.",
    "A little girl in a red dress is climbing a tree.",
    "The man who is wearing a blue hat plays the guitar.",
    "Three dogs are running through the snow.",
    "A woman is reading a book while her son sleeps on the bench.",
)
KINDS = {
    "encoder_self": "Encoder self-attention",
    "decoder_self": "Decoder self-attention",
    "cross": "Cross-attention",
}
TARGETS = {"beam": "Beam 4", "greedy": "Greedy", "typed": "Typed"}
SCOPES = {"head": "Head", "layer": "Layer", "everywhere": "Everywhere"}
TAUS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)
LONGEST_IN_URL = 2_000
"""Characters: a server refuses a URL of 64 kB, and one character may take nine bytes there."""


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
    token = _current.set(_sidebar())
    try:
        yield
    finally:
        _current.reset(token)


def current_inputs() -> Inputs:
    """What the sidebar says; a page that runs without app.py gets a sidebar of its own."""
    return _current.get() or _sidebar()


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
    notes: list[str] = []
    with st.sidebar:
        st.markdown("#### Attention Explorer")
        source = _source()
        target, typed = _target(notes)
        look = st.container()
        checkpoint, device = _engine(notes)
        translator, problem = _open(checkpoint, device)
        with look:
            kind, layer, head = _place(translator, notes)
            tau, scope = _temperature(notes)
        _link_and_reset()
    return Inputs(translator, problem, tuple(notes), source, target, typed, kind, layer, head, tau, scope)


def _open(checkpoint: str | None, device: str) -> tuple[Translator | None, str]:
    try:
        return open_translator(checkpoint, device), ""
    except CheckpointError as error:
        return None, str(error)


def _source() -> str:
    text = _text("Source sentence, English", "source", EXAMPLES[0])
    st.selectbox(
        "Example sentences",
        EXAMPLES,
        index=None,
        key="example",
        placeholder="… or take an example",
        label_visibility="collapsed",
        on_change=_take_example,
    )
    return text


def _take_example() -> None:
    if example := st.session_state["example"]:
        st.session_state["source"] = example
        st.session_state["example"] = None


def _target(notes: list[str]) -> tuple[str, str]:
    target = _choice("Target, German", "target", TARGETS, notes)
    if target != "typed":
        return target, ""
    return target, _text("Your own translation", "typed", "", "Type a German sentence")


def _engine(notes: list[str]) -> tuple[str | None, str]:
    checkpoints, devices = available_checkpoints(), available_devices()
    checkpoint = None
    if checkpoints:
        checkpoint = _select("Checkpoint", "checkpoint", checkpoints, notes)
    device = devices[0]
    if len(devices) > 1:
        device = _select("Device", "device", devices, notes)
    else:
        st.caption(f"Runs on: {device}")
    return checkpoint, device


def _place(translator: Translator | None, notes: list[str]) -> tuple[str, int, int]:
    _drop_impossible("kind", list(KINDS), "encoder_self", list(KINDS.values()), notes)
    kind = st.radio("Attention", list(KINDS), format_func=KINDS.__getitem__, key="kind", bind="query-params")
    kind = kind or "encoder_self"
    layers, heads = 1, 1
    if translator is not None:
        config = translator.model.config
        layers = config.n_encoder_layers if kind == "encoder_self" else config.n_decoder_layers
        heads = config.n_heads
    layer = _choice("Layer", "layer", {i: str(i) for i in range(layers)}, notes)
    head = _choice("Head", "head", {i: str(i) for i in range(heads)}, notes)
    return kind, layer, head


def _temperature(notes: list[str]) -> tuple[float, str]:
    _drop_impossible("tau", TAUS, 1.0, [f"{tau:g}" for tau in TAUS], notes)
    tau = st.select_slider(
        "Attention temperature τ",
        TAUS,
        value=1.0,
        format_func=lambda tau: f"{tau:g}",
        key="tau",
        bind="query-params",
        help="softmax(x / τ): below 1 sharper, above 1 flatter, 1 as trained. The model runs again with it.",
    )
    return tau, _choice("Temperature acts on", "scope", SCOPES, notes)


def _text(label: str, key: str, default: str, placeholder: str | None = None) -> str:
    bind = "query-params" if len(st.session_state.get(key) or "") <= LONGEST_IN_URL else None
    text = st.text_area(
        label, default, key=key, height=100, placeholder=placeholder, bind=bind, persist_state="session"
    )
    return text or ""


def _choice(label: str, key: str, options: dict[Any, str], notes: list[str]) -> Any:
    first = next(iter(options))
    _drop_impossible(key, list(options), first, list(options.values()), notes)
    chosen = st.segmented_control(
        label,
        list(options),
        default=first,
        required=True,
        format_func=options.__getitem__,
        key=key,
        bind="query-params",
        persist_state="session",
    )
    return first if chosen is None else chosen


def _select(label: str, key: str, options: list[str], notes: list[str]) -> str:
    _drop_impossible(key, options, options[0], options, notes)
    return st.selectbox(label, options, key=key, bind="query-params", persist_state="session") or options[0]


def _drop_impossible(key: str, options: Sequence[Any], default: Any, labels: Sequence[str], notes: list[str]) -> None:
    """Before its widget is drawn: a value that this checkpoint or any link cannot have becomes the default."""
    asked = st.query_params.get(key)
    if key not in st.session_state and asked is not None and asked not in labels:
        notes.append(f"The link asked for a {key} that is not there; {labels[options.index(default)]} is shown.")
    elif key in st.session_state and st.session_state[key] not in options:
        st.session_state[key] = default


def _link_and_reset() -> None:
    link, reset = st.columns(2)
    with link.popover("Link", icon=":material/link:", width="stretch"):
        st.caption("Opens this page with exactly these inputs.")
        st.code(_link(), language=None, wrap_lines=True)
    reset.button("Reset", icon=":material/restart_alt:", width="stretch", on_click=_reset)


def _link() -> str:
    query = urlencode(st.query_params.to_dict())
    return f"{st.context.url or ''}{'?' if query else ''}{query}"


def _reset() -> None:
    for key in ("source", "target", "typed", "kind", "layer", "head", "tau", "scope", "checkpoint", "device"):
        st.session_state.pop(key, None)
