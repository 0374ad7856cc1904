"""The menu of a checkpoint's example sentences, and what else the sidebar offers beside a sentence."""

import streamlit as st

from model.language import tr
from model.run import Place
from pages.frame.questions.opened_station import offer_own_sentence
from pages.views.examples import Examples, examples_of
from pages.widgets.controls import set_controls

TAKEN = "example-taken"
"""in the session: the last sentence chosen in the menu"""


def example_menu(checkpoint: str) -> str:
    """A menu of all sentences, and the head of the one on screen; returns why there is none, or an empty string."""
    examples = examples_of(checkpoint)
    labels = {example.sentence: f"{tr(example.label)} {example.sentence}" for example in examples.showing}
    if examples.menu:
        st.selectbox(
            tr("Example sentences"),
            examples.menu,
            index=None,
            key="example",
            format_func=lambda sentence: labels.get(sentence, sentence),
            placeholder=tr("Examples"),
            label_visibility="collapsed",
            on_change=_take,
        )
    offer_own_sentence("own-sentence-sidebar")
    _offer_head(examples)
    return tr(examples.problem)


def _take() -> None:
    """Before the page runs again: the chosen sentence is the text; the head stays as the person has chosen it."""
    state = st.session_state
    if sentence := state["example"]:
        state["source"], state["example"], state[TAKEN] = sentence, None, sentence


def _offer_head(examples: Examples) -> None:
    """As long as an example is on screen: a button that goes to its head, unless that is chosen already."""
    state = st.session_state
    for example in examples.of(state.get(TAKEN, "")):
        if state["source"] == example.sentence and any(state.get(key) != one for key, one in example.place.items()):
            st.button(
                tr("Go to its head"),
                key="example-head",
                icon=":material/visibility:",
                type="tertiary",
                help=f"{tr(Place(**example.place).title)}. {tr(example.label)}",
                on_click=set_controls,
                args=(example.place,),
            )
            return
