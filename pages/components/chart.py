"""How every Plotly figure is put on a page, and how its file is called."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import streamlit as st

from viz.theme import OwnLook

RUN = "files_of"
"""in the session: what names of files say of the run"""


def name_files(checkpoint: str, weights: str) -> None:
    """Let the files of all charts end in checkpoint and hash, until the next run."""
    st.session_state[RUN] = f"{checkpoint}-{weights[:8]}"


def chart(
    figure: Any, key: str, *, alt: str, on_select: str | Callable[[], None] = "ignore", roomy: bool = False
) -> Any:
    """Draw a Plotly figure over the full width, in the colours of the person's theme.

    Args:
        figure: a Plotly figure, or its plain dict.
        key: unique on the page.
        alt: what the figure shows, for people who cannot see it: the name that a screen reader gives it.
        on_select: "rerun", or a function to call first, makes a click on a point run the page again; what
            was chosen is returned, and is in st.session_state[key].
        roomy: several maps beside each other: on a phone they keep the room that they need, and scroll.
    """
    config = {
        "displaylogo": False,
        "modeBarButtonsToRemove": ["lasso2d", "select2d"],
        "toImageButtonOptions": {"format": "png", "scale": 2, "filename": f"{key}-{st.session_state.get(RUN, '')}"},
    }
    theme = "streamlit"
    if isinstance(figure, OwnLook):
        # Its axes have fixed ranges: on their own they would run the other way round.
        theme, config["doubleClick"] = None, "reset"
        config["modeBarButtonsToRemove"].append("autoScale2d")
    shown = {"key": key, "theme": theme, "config": config, "alt": alt}
    with st.container(key=f"roomy-{key}") if roomy else nullcontext():
        return st.plotly_chart(figure, **shown, on_select=on_select, selection_mode="points")
