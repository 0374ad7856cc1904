"""The menu of a checkpoint's example sentences."""

import streamlit as st

from pages.views.examples import Examples, examples_of


def example_menu(checkpoint: str) -> str:
    """A menu of all sentences; choosing one also goes to its head. Returns why there is none, or an empty string."""
    examples = examples_of(checkpoint)
    labels = {example.sentence: f"{example.label} {example.sentence}" for example in examples.showing}
    if examples.menu:
        st.selectbox(
            "Example sentences",
            examples.menu,
            index=None,
            key="example",
            format_func=lambda sentence: labels.get(sentence, sentence),
            placeholder="Examples",
            label_visibility="collapsed",
            on_change=_take,
            args=(examples,),
        )
    return examples.problem


def _take(examples: Examples) -> None:
    state = st.session_state
    if sentence := state["example"]:
        state["source"], state["example"] = sentence, None
        for example in examples.of(sentence):
            state.update(example.place)
