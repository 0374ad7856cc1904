"""The keys that choose layer and head on every page."""

from collections.abc import Sequence

import streamlit as st

from model.run import Place
from model.trace import Kind
from pages.widgets.canvas import component
from pages.widgets.controls import set_controls

KEY = "here"


def show_here(kinds: Sequence[Kind], place: Place, page: tuple[str, str], off: bool) -> None:
    """Let Shift with an arrow key choose another layer or head.

    Args:
        kinds: of the model; none if it could not be opened.
        place: what is chosen.
        page: its section in the menu, which is marked there, and the last part of its address, by which the browser's
            history knows whose run this is.
        off: whether the page does not depend on it.
    """
    columns = [{"name": kind.name, "layers": kind.layers, "heads": kind.heads} for kind in kinds]
    data = {"kinds": columns, "place": vars(place), "section": page[0], "page": page[1], "off": off or not kinds}
    # A run that changes nothing else reaches the component, too.
    data["run"] = st.session_state["run"] = st.session_state.get("run", 0) + 1
    component("here")(key=KEY, data=data, height=1, on_move_change=_move)


def _move() -> None:
    """Before the page runs again; the controls replace what this model lacks."""
    if place := st.session_state[KEY].get("move"):
        set_controls({"kind": str(place["kind"]), "layer": int(place["layer"]), "head": int(place["head"])})
