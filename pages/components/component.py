"""Our own pictures in the browser: the files of viz/components as a Streamlit component."""

from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

import viz

FILES = Path(viz.__file__).parent / "components"


@cache
def component(name: str, before: tuple[str, ...] = ()) -> Any:
    """The component of `name`.js and `name`.css; the files in `before`, of either kind, stand in front of them."""
    files = (*before, f"{name}.js", f"{name}.css")
    script, style = (
        "\n".join((FILES / file).read_text(encoding="utf-8") for file in files if file.endswith(ending))
        for ending in (".js", ".css")
    )
    return st.components.v2.component(name, html=f'<div class="{name}"></div>\n', css=style, js=script)
