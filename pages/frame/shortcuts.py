"""Keyboard shortcuts for layer and head, on every page."""

import streamlit as st

from pages.widgets.canvas import component


def head_shortcuts(layer: int, head: int, layers: int, heads: int, page: str) -> None:
    """Shift with an arrow key goes to the next layer or head; the shortcuts are shown beside the controls.

    Args:
        layer: the chosen one.
        head: the chosen one.
        layers: how many there are.
        heads: how many a layer has.
        page: the last part of its address, by which the browser's history knows whose run this is.
    """
    data = {"layer": layer, "head": head, "layers": layers, "heads": heads, "page": page}
    # A run that changes nothing else reaches the component, too.
    data["run"] = st.session_state["run"] = st.session_state.get("run", 0) + 1
    component("keys")(key="head-keys", data=data, on_move_change=_move)


def _move() -> None:
    """Before the page runs again; the controls replace what this model lacks."""
    place = st.session_state["head-keys"].get("move")
    if place:
        st.session_state.update(layer=int(place["layer"]), head=int(place["head"]))
