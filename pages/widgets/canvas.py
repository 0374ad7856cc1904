"""Our own pictures as Streamlit components: the scripts and styles in viz/canvas/js."""

from collections.abc import Callable
from functools import cache
from typing import Any

import streamlit as st

from model.language import ENGLISH, Language, language
from viz.drawing import Drawing, sources


def component(name: str) -> Any:
    """The component of viz/canvas/js/*/`name`.js and `name`.css, registered with Streamlit once for each language."""
    return _component(name, language())


@cache
def _component(name: str, spoken: Language) -> Any:
    script, style = sources(name)
    registered = name if spoken is ENGLISH else f"{name}-{spoken.code}"
    return st.components.v2.component(registered, html=f'<div class="{name} component"></div>\n', css=style, js=script)


def draw(drawing: Drawing, key: str, **on_change: Any) -> Drawing:
    """Put a picture on the page; returns it for the page's export."""
    component(drawing.component)(key=key, data=drawing.data, **on_change)
    return drawing


def mosaic_picture(drawing: Drawing, key: str, on_choose: Callable[[str, int, int], None]) -> Drawing:
    """Draw every head of every layer, by `viz.canvas.mosaic.mosaic`; a click or Enter chooses one.

    `on_choose` is called with kind, layer and head before the page runs again, when widgets can still be set.
    """

    def choose() -> None:
        place = st.session_state[key].get("choose")
        if place:
            on_choose(str(place["kind"]), int(place["layer"]), int(place["head"]))

    return draw(drawing, key, on_choose_change=choose)
