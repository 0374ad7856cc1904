"""The fields of the sidebar: each is kept in the session and in the URL, and falls back where that is forged."""

import re
from collections.abc import Callable
from typing import Any

import streamlit as st

from model.trace import KIND_TITLES

KINDS = KIND_TITLES
TARGETS = {"beam": "Beam 4", "greedy": "Greedy", "typed": "Typed"}
SCOPES = {"head": "Head", "layer": "Layer", "everywhere": "Everywhere"}
TAUS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)
DEFAULTS = {
    "source": "The animal didn't cross the street because it was too tired.",
    "target": "beam",
    "typed": "",
    "kind": "encoder_self",
    "layer": 0,
    "head": 0,
    "tau": 1.0,
    "scope": "head",
    "side_sentence": "The animal didn't cross the street because it was too wide.",
}
"""by the name of the widget, which is also its name in the URL"""
SEE = "see"
"""parameter with which a link inside the app goes to a head: encoder_self.1.0; and to its cell: encoder_self.1.0.9.2"""
LONGEST_IN_URL = 2_000
"""Characters: a server refuses a URL of 64 kB, and one character may take nine bytes there."""


def take_place() -> None:
    """Before the fields are drawn: the head, and perhaps its cell, that a link inside the app goes to, once."""
    kind, *numbers = st.query_params.pop(SEE, "").split(".")
    if kind in KINDS and all(re.fullmatch("[0-9]{1,4}", number) for number in numbers):
        st.session_state["kind"] = kind
        st.session_state.update(zip(("layer", "head", "cell_query", "cell_key"), map(int, numbers), strict=False))


def text_field(label: str, key: str, placeholder: str) -> str:
    """A text that is in the URL as long as it is short enough for one."""
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


def choice_field(
    label: str, key: str, options: dict[Any, str], notes: list[str], on_change: Callable[[], None] | None = None
) -> Any:
    """One of a few values, side by side.

    Args:
        label: above it.
        key: of the widget, and its name in the URL.
        options: what is shown for each value.
        notes: what a link asks for in vain is added here.
        on_change: called when a person chooses another.
    """
    drop_impossible(key, options, notes)
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


def select_field(label: str, key: str, options: list[str], notes: list[str]) -> str:
    """One of many names, in a menu."""
    drop_impossible(key, {option: option for option in options}, notes)
    return st.selectbox(label, options, key=key, bind="query-params") or options[0]


def drop_impossible(key: str, options: dict[Any, str], notes: list[str]) -> None:
    """Before its widget is drawn: what the link asks for in vain, or this checkpoint lacks, becomes the default."""
    default = DEFAULTS.get(key)
    default = default if default in options else next(iter(options))
    state, asked = st.session_state, st.query_params.get(key)
    if key not in state and asked is not None and asked not in options.values():
        notes.append(f"The link asks for a {key} that is not there; you see {options[default]} instead.")
    elif state.get(key) is not None and state[key] not in options:
        notes.append(f"There is no {key} {state[key]} here; you see {options[default]} instead.")
        state[key] = default
