"""What to look for in one of the example sentences, in the numbers of this run."""

import streamlit as st

from pages.components.cards import way
from pages.components.examples import SHOWING, Example, largest_weight
from pages.components.fields import KINDS, SEE
from pages.components.frame import View


def show_example(view: View) -> None:
    """Where the sentence is one of the ten and the run looks where it should: that weight, and the ways to its head."""
    for example in SHOWING:
        if example.sentence == view.source and (found := largest_weight(example, view.trace)):
            _show(example, *found)


def _show(example: Example, query: int, key: int, weight: float) -> None:
    row = f"“{example.query[0]}”" if example.kind == "encoder_self" else f"the step that predicts “{example.query[0]}”"
    with st.container(border=True, key="example-note"):
        st.text(
            f"{example.label} In {KINDS[example.kind].lower()}, layer {example.layer}, head {example.head}, {row} "
            f"gives its largest weight, {weight:.2f}, to “{example.key[0]}”. {example.why}"
        )
        with st.container(horizontal=True):
            head = f"{example.kind}.{example.layer}.{example.head}"
            way("See this head", "heads_and_layers", **{SEE: head})
            way("This weight, step by step", "attention_step_by_step", **{SEE: f"{head}.{query}.{key}"})
