"""The mosaic of all heads, and the head that a person chooses in it."""

from collections.abc import Callable

import streamlit as st

from pages.components.component import draw
from viz.standalone import Drawing

FILES = ("toolbar.css", "layers.css", "header.js", "colours.js", "svg_pen.js", "save_picture.js", "mosaic_draw.js")


def mosaic_picture(payload: bytes, key: str, on_choose: Callable[[str, int, int], None]) -> Drawing:
    """Draw every head of every layer; a click, or Enter, chooses one.

    Args:
        payload: from viz.mosaic.mosaic.
        key: unique in the app.
        on_choose: called with kind, layer and head before the page runs again: the place to set widgets.
    """

    def choose() -> None:
        place = st.session_state[key].get("choose")
        if place:
            on_choose(str(place["kind"]), int(place["layer"]), int(place["head"]))

    return draw(Drawing("mosaic", FILES, payload), key, on_choose_change=choose)
