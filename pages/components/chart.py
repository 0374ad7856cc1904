"""How every Plotly figure is put on a page."""

from collections.abc import Callable
from typing import Any

import streamlit as st


def chart(figure: Any, key: str, *, alt: str | None = None, on_select: str | Callable[[], None] = "ignore") -> Any:
    """Draw a Plotly figure over the full width, in the colours of the person's theme.

    Args:
        figure: a Plotly figure, or its plain dict.
        key: unique on the page.
        alt: what the figure shows, for people who cannot see it.
        on_select: "rerun", or a function to call first, makes a click on a point run the page again; what
            was chosen is returned, and is in st.session_state[key].
    """
    config = {
        "displaylogo": False,
        "modeBarButtonsToRemove": ["lasso2d", "select2d"],
        "toImageButtonOptions": {"format": "png", "scale": 2, "filename": key},
    }
    return st.plotly_chart(figure, key=key, config=config, alt=alt, on_select=on_select, selection_mode="points")
