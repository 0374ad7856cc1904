"""One attention head in seven steps: the formula, the matrices with this run's numbers, and one cell's arithmetic."""

import streamlit as st

from model.checkpoints.store import shown_name
from model.network.attention import MultiHeadAttention
from pages.frame.changes import switch_off_link
from pages.frame.open_page import open_page
from pages.parts.attention_step_by_step import (
    choose_cell,
    choose_step_of_head,
    draw_arithmetic,
    draw_matrices,
    explain_step_of_head,
)
from pages.widgets.explain import show_code
from pages.widgets.export import Picture, export
from pages.widgets.page_links import link_with, links
from pages.widgets.proof_strip import proof_strip
from pages.widgets.snippet import Call
from viz import tokens
from viz.latex import attention_formula
from viz.steps.arithmetic import explain_step, result_chain
from viz.steps.head import head_of
from viz.steps.steps import STEPS, picture, result, shapes, step_arrays
from viz.steps.strips import arithmetic_picture

view = open_page(__file__)
decodes = view.attention.predicts is not None
rows = tokens.decoder_rows(view.trace.tgt_tokens, view.trace.next_tokens) if decodes else ()
head = head_of(view.attention, view.head, tuple(rows))
place = f"{view.kind} layer {view.layer} head {view.head}"

number = choose_step_of_head()
step = STEPS[number]
with st.container(key="step-formula", horizontal=True, horizontal_alignment="center", vertical_alignment="center"):
    for line in attention_formula(number, head):
        st.latex(line, width="content")
explain_step_of_head(number, head)
stage = st.container(key="step-stage")
# A container without anything in it takes no room, and what follows would move down.
stage.empty()
st.caption(shapes(head))

st.header("The arithmetic of one cell", anchor=False, help="Choose the cell here, or click on a matrix.")
choice = choose_cell(head, number)
with stage:
    run = f"{shown_name(view.trace.checkpoint)} {view.trace.checkpoint_hash[:8]}"
    drawn = draw_matrices(picture(number, head, choice, f"{run}, {place}, step {number + 1}: {step.title}"))
shown = explain_step(number, head, choice)
st.latex(shown.latex)
sums = draw_arithmetic(arithmetic_picture(shown, result_chain(head, choice), number))

with st.container(horizontal=True):
    links(heads_and_layers="This head among all others")
    link_with("What if this head were off?", "what_if", **switch_off_link(view.kind, view.layer, view.head))
show_code(MultiHeadAttention)
export(
    view,
    f"{place.replace(' ', '-')}-step-{number + 1}",
    Call(step_arrays, view.attention, view.head, number),
    result(number, head)[1],
    (Picture(f"Step {number + 1}", "matrices", drawn), Picture("The arithmetic", "arithmetic", sums)),
)
proof_strip(view)
