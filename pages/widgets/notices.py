"""Notices above a page: of a model that is not the one its folder describes, of a text that it was not trained for."""

import streamlit as st

from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.store import shown_name
from model.language import in_a_row, tr
from model.run import Run
from pages.views.examples import unfamiliar
from pages.widgets.explain import say
from viz.tokens import as_markdown, visible


def say_departures(opened: Checkpoint) -> None:
    """The red line, also in place of green ticks, where there is one; names and values in it come from the files."""
    if not opened.departures:
        return
    name = as_markdown(visible(shown_name(opened.name)))
    said = [tr("**{name} does not run as its folder says.**", name=name)]
    said += [as_markdown(visible(tr(one))) for one in opened.departures]
    said.append(tr("All numbers here are those of the network without it."))
    st.error(in_a_row(*said), icon=":material/error:")


def say_unfamiliar(run: Run) -> None:
    """The notice for a box that takes a text, where there is one to draw, with what was measured."""
    translated = not run.trace.interventions and run.request.target is None
    if facts := unfamiliar(run.trace, translated):
        say("home", "An unfamiliar text", **facts)
