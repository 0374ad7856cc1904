"""How every Plotly figure is put on a page."""

from typing import Any

import streamlit as st


def chart(figure: Any, key: str, *, alt: str | None = None, on_select: str = "ignore") -> Any:
    """Draw a Plotly figure over the full width, in the colours of the person's theme.

    Args:
        figure: a Plotly figure, or its plain dict.
        key: unique on the page.
        alt: what the figure shows, for people who cannot see it.
        on_select: "rerun" makes a click or a lasso on points run the page again; the answer is returned.
    """
    config = {
        "displaylogo": False,
        "modeBarButtonsToRemove": ["lasso2d", "select2d"],
        "toImageButtonOptions": {"format": "png", "scale": 2, "filename": key},
    }
    return st.plotly_chart(figure, key=key, config=config, alt=alt, on_select=on_select, selection_mode="points")
