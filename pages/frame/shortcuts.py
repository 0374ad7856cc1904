"""Layer and head by the keyboard, on every page; and a history that goes from page to page."""

import streamlit as st

from pages.widgets.canvas import component


def head_keys(layer: int, head: int, layers: int, heads: int) -> None:
    """Shift with an arrow key goes to the next layer or head; the keys are named beside the fields.

    Args:
        layer: the chosen one.
        head: the chosen one.
        layers: how many there are.
        heads: how many there are in a layer.
    """
    data = {"layer": layer, "head": head, "layers": layers, "heads": heads}
    component("keys")(key="head-keys", data=data, on_move_change=_move)


def _move() -> None:
    """Before the page runs again; what this model lacks the fields themselves refuse."""
    place = st.session_state["head-keys"].get("move")
    if place:
        st.session_state.update(layer=int(place["layer"]), head=int(place["head"]))
