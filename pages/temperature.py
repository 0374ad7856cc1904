"""Temperature: softmax(x / tau) of the run's own scores, the division by sqrt(d_k), and the effect of tau."""

import streamlit as st

from model.analysis.distributions import entropy
from model.analysis.softmax import one_hot_weights, product_statistics, softmax_at, uniform_weights
from model.analysis.view_arrays import head_arrays
from model.checkpoints.checkpoint import LOGITS
from model.interventions import AttentionTemperature
from model.network.attention import MultiHeadAttention
from pages.frame.open_page import open_page
from pages.parts.move_query import show_move_query
from pages.parts.scaling import show_many, show_scaling
from pages.parts.temperature import choose_row, draw_live, show_row, show_run_again
from pages.widgets.chart import axis_labels
from pages.widgets.controls import tabs
from pages.widgets.explain import explain, show_code
from pages.widgets.export import Picture, export
from pages.widgets.proof_strip import proof_strip
from pages.widgets.snippet import Call
from viz.heatmap import cells_table
from viz.latex import scaled_scores

TABS = {
    "Before and after": show_run_again,
    "One row": show_row,
    "Move the query": show_move_query,
    "Divided by √d_k": show_scaling,
    "Many temperatures": show_many,
}
WITH_PROBABILITIES = ("Divided by √d_k", "Many temperatures")
"""tabs that compare what the model writes, and how sure it is"""

view = open_page(__file__)
attention, head = view.attention, view.head
mask, scaled, pattern = attention.mask[head], attention.pre_softmax[head], attention.pattern[head]

row = choose_row(view)
redrawn = draw_live(view, row)
st.caption(
    "While you drag τ, your browser **redraws** this one head from the scores of the last run. When you release it, "
    "τ is set in the sidebar and the model is **rerun** with τ inside the attentions selected by “Temperature acts "
    "on”, so everything downstream changes too. Rows are queries, columns keys."
)
division = "The division by √d_k"
if attention.undivided:
    division = "The paper's division by √d_k, which this model leaves out,"
elif attention.scale == 1:
    division = "The division by √d_k, which this model makes in its queries,"
scores = scaled_scores(attention, r"q_i \cdot k_j", "b_{ij}")
explain(
    "The softmax turns scores into weights, and τ controls how sharply: at τ < 1 the highest score gets more weight, "
    f"at τ > 1 less. {division} is itself a temperature: without it the dot products of a large head would "
    "be so far apart that the softmax has extremely small gradients. Temperature in a softmax follows Hinton, "
    "Vinyals and Dean (2015, “Distilling the Knowledge in a Neural Network”, section 2); the paper's own model has τ "
    "= 1.",
    r"w_{ij} = \frac{\exp(x_{ij} / \tau)}{\sum_{j'} \exp(x_{ij'} / \tau)}, \qquad "
    rf"x_{{ij}} = {scores}, \qquad "
    r"H_i = -\sum_j w_{ij} \log_2 w_{ij}",
    "3.2.1 and footnote 4",
)
gives = LOGITS in view.translator.features
tabs({name: show for name, show in TABS.items() if gives or name not in WITH_PROBABILITIES}, "part", view, row)
show_code(
    MultiHeadAttention._explicit,
    AttentionTemperature,
    softmax_at,
    one_hot_weights,
    uniform_weights,
    entropy,
    product_statistics,
)
rows, keys = axis_labels(attention)
export(
    view,
    f"temperature-{view.place.slug}",
    Call(head_arrays, attention, head, ("mask", "scores", "scaled", "pattern")),
    cells_table(rows, keys, {"visible": mask, "score": attention.scores[head], "scaled": scaled, "weight": pattern}),
    (Picture("The head and one of its rows", "temperature", redrawn),),
)
proof_strip(view)
