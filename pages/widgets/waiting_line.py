"""A training of a visitor that begins when its turn comes: until then the page says how many are ahead."""

from functools import partial
from typing import Any

import streamlit as st

from model.language import in_this_language, tr
from pages.compute.queue import wait_for_turn
from pages.compute.trainings import KEPT_SECONDS, SHARED_SECONDS, Trainings
from pages.widgets import controls
from pages.widgets.explain import say

POLL_SECONDS = 2.0


def find_or_wait(trainings: Trainings, page: str, key: str) -> tuple[str, Any]:
    """The id in the link, and its training; without one the page has said that it waits or is gone, if there is an id.

    `page` is the text whose section "Gone" says what to do when there is none any more.
    """
    name = controls.pictured(key, "")
    ahead = trainings.ahead(name) if name else None
    if ahead is None:
        if name:
            say(page, "Gone", seconds=KEPT_SECONDS, minutes=SHARED_SECONDS / 60)
        return "", None
    if ahead == 0 and trainings.find(name) is None:
        with wait_for_turn(), st.spinner(tr("The model is being made ready …")):
            trainings.begin(name)
    if training := trainings.find(name):
        return name, training
    st.fragment(in_this_language(partial(_show_place, trainings, name, ahead)), run_every=POLL_SECONDS)()
    st.button(tr("Leave the line"), key=f"{key}-leave", on_click=leave, args=(trainings, key))
    return name, None


def leave(trainings: Trainings, key: str) -> None:
    """In a callback: end the training of the link, or give up its place in line."""
    trainings.end(st.session_state.get(key, ""))
    controls.set_controls({key: ""})


def _show_place(trainings: Trainings, name: str, ahead: int) -> None:
    if trainings.ahead(name) != ahead or trainings.find(name):
        st.rerun()  # of the whole page
    say("live_training", "In line", ahead=ahead, most=trainings.most, minutes=SHARED_SECONDS / 60)
