"""Our own pictures in the browser: the files of viz/components as a Streamlit component."""

from functools import cache
from typing import Any

import streamlit as st

from viz.standalone import Drawing, sources


@cache
def component(name: str, before: tuple[str, ...] = ()) -> Any:
    """The component of `name`.js and `name`.css; the files in `before`, of either kind, stand in front of them."""
    script, style = sources(name, before)
    return st.components.v2.component(name, html=f'<div class="{name}"></div>\n', css=style, js=script)


def draw(drawing: Drawing, key: str, **on_change: Any) -> Drawing:
    """Put a picture on the page; it is handed back for the page's export."""
    component(drawing.component, drawing.before)(key=key, data=drawing.data, **on_change)
    return drawing
