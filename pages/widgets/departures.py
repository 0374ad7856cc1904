"""The red line of a model that is not the one its folder describes: on every page, and in place of green ticks."""

import streamlit as st

from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.store import shown_name
from model.language import in_a_row, tr
from viz.tokens import as_markdown, visible


def say_departures(opened: Checkpoint) -> None:
    """Draw it, where there is one to draw; names and values in it come from the files."""
    if not opened.departures:
        return
    name = as_markdown(visible(shown_name(opened.name)))
    said = [tr("**{name} does not run as its folder says.**", name=name)]
    said += [as_markdown(visible(tr(one))) for one in opened.departures]
    said.append(tr("All numbers here are those of the network without it."))
    st.error(in_a_row(*said), icon=":material/error:")
