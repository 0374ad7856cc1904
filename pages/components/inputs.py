"""The sidebar: what to translate, where to look, and the temperature. The same on every page.

app.py draws it, so its widgets are the same ones on every page and keep their values; each is bound to
the URL, so a link brings them along.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from model.checkpoints import DEFAULT_CHECKPOINT, CheckpointError, available_checkpoints
from model.devices import available_devices
from model.interventions import AttentionTemperature
from model.translator import Translator
from pages.components.links import drop_endless_numbers
from pages.components.runs import Request, open_translator, run

EXAMPLES = (
    "The animal didn't cross the street because it was too tired.",
    "How are you?",
    "I have never seen such a beautiful sunset.",
    "She told me that she would come back tomorrow.",
    "Can you help me find my keys?",
    "The bank is closed today, but the shop is open.",
    "My brother wants to buy a new car.",
    "If it rains tomorrow, we will stay at home.",
    "Why didn't you call me last night?",
    "The children are playing in the garden.",
    "He speaks German better than I do.",
    "I don't know what you are talking about.",
    "Tom gave Mary the book that he had bought.",
    "What time does the next train leave?",
    "We went to the cinema, and then we had dinner.",
    "The old man who lives next door has two dogs.",
    "I would like a cup of coffee, please.",
    "They had to wait because the doctor was late.",
    "Good morning! Did you sleep well?",
    "Nobody knows where she has gone.",
    "Two young men are cooking in a kitchen.",
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
DEFAULTS = {
    "source": EXAMPLES[0],
    "target": "beam",
    "typed": "",
    "kind": "encoder_self",
    "layer": 0,
    "head": 0,
    "tau": 1.0,
    "scope": "head",
}
"""by the name of the widget, which is also its name in the URL"""
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


def _open(checkpoint: str, device: str) -> tuple[Translator | None, str]:
    try:
        return open_translator(checkpoint, device), ""
    except CheckpointError as error:
        return None, str(error)


def _source() -> str:
    text = _text("Source sentence, English", "source", "Type an English sentence")
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
    target = _choice("Target, German", "target", TARGETS, notes, on_change=_offer_own_translation)
    if target != "typed":
        return target, ""
    return target, _text("Your own translation", "typed", "Type a German sentence")


def _offer_own_translation() -> None:
    """Somebody who starts to type a target begins with the model's own, and changes that."""
    state = st.session_state
    if state["target"] == "typed" and not state.get("typed"):
        # What is wrong with the source or the checkpoint, the page itself is about to say.
        with suppress(ValueError):
            translator = open_translator(
                state.get("checkpoint") or DEFAULT_CHECKPOINT, state.get("device") or available_devices()[0]
            )
            state["typed"] = run(translator, Request(translator.leading(state["source"]), None, 4, ())).translation


def _engine(notes: list[str]) -> tuple[str, str]:
    checkpoints, devices = available_checkpoints() or [DEFAULT_CHECKPOINT], available_devices()
    checkpoint = _select("Checkpoint", "checkpoint", checkpoints, notes)
    if len(devices) > 1:
        return checkpoint, _select("Runs on", "device", devices, notes)
    st.caption(f"Runs on: {devices[0]}")
    return checkpoint, devices[0]


def _place(translator: Translator | None, notes: list[str]) -> tuple[str, int, int]:
    _drop_impossible("kind", KINDS, notes)
    kind = st.radio("Attention", list(KINDS), format_func=KINDS.__getitem__, key="kind", bind="query-params")
    kind = kind or DEFAULTS["kind"]
    layers, heads = 1, 1
    if translator is not None:
        config = translator.model.config
        layers = config.n_encoder_layers if kind == "encoder_self" else config.n_decoder_layers
        heads = config.n_heads
    layer = _choice("Layer", "layer", {i: str(i) for i in range(layers)}, notes)
    head = _choice("Head", "head", {i: str(i) for i in range(heads)}, notes)
    return kind, layer, head


def _temperature(notes: list[str]) -> tuple[float, str]:
    _drop_impossible("tau", {tau: f"{tau:g}" for tau in TAUS}, notes)
    tau = st.select_slider(
        "Attention temperature τ",
        TAUS,
        value=DEFAULTS["tau"],
        format_func=lambda tau: f"{tau:g}",
        key="tau",
        bind="query-params",
        help="softmax(x / τ): below 1 sharper, above 1 flatter, 1 as trained. The model runs again with it.",
    )
    return tau, _choice("Temperature acts on", "scope", SCOPES, notes)


def _text(label: str, key: str, placeholder: str) -> str:
    state, unbound = st.session_state, f"{key}-unbound"
    fits = len(state.get(key) or "") <= LONGEST_IN_URL
    if fits and state.get(unbound):
        # Bound again: only a value that is set here is written to the URL.
        state[key] = state[key]
    state[unbound] = not fits
    bind = "query-params" if fits else None
    text = st.text_area(
        label, DEFAULTS[key], key=key, height=100, placeholder=placeholder, bind=bind, persist_state="session"
    )
    return text or ""


def _choice(
    label: str, key: str, options: dict[Any, str], notes: list[str], on_change: Callable[[], None] | None = None
) -> Any:
    _drop_impossible(key, options, notes)
    chosen = st.segmented_control(
        label,
        list(options),
        default=DEFAULTS[key],
        required=True,
        format_func=options.__getitem__,
        key=key,
        on_change=on_change,
        bind="query-params",
    )
    return DEFAULTS[key] if chosen is None else chosen


def _select(label: str, key: str, options: list[str], notes: list[str]) -> str:
    _drop_impossible(key, {option: option for option in options}, notes)
    return st.selectbox(label, options, key=key, bind="query-params") or options[0]


def _drop_impossible(key: str, options: dict[Any, str], notes: list[str]) -> None:
    """Before its widget is drawn: what the link asks for in vain, or this checkpoint lacks, becomes the default."""
    default = DEFAULTS.get(key, next(iter(options)))
    state, asked = st.session_state, st.query_params.get(key)
    if key not in state and asked is not None and asked not in options.values():
        notes.append(f"The link asks for a {key} that is not there; you see {options[default]} instead.")
    elif state.get(key) is not None and state[key] not in options:
        notes.append(f"There is no {key} {state[key]} here; you see {options[default]} instead.")
        state[key] = default


def _link_and_reset() -> None:
    link, reset = st.columns(2)
    with link.popover("Link", icon=":material/link:", width="stretch"):
        st.caption("Opens this page with exactly these inputs.")
        query = urlencode(st.query_params.to_dict())
        st.code(f"{st.context.url or ''}{'?' if query else ''}{query}", language=None, wrap_lines=True)
    reset.button("Reset", icon=":material/restart_alt:", width="stretch", on_click=_reset)


def _reset() -> None:
    for key, value in DEFAULTS.items():
        if key in st.session_state:
            st.session_state[key] = value
    if checkpoints := available_checkpoints():
        st.session_state["checkpoint"] = checkpoints[0]
