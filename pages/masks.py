"""Masks: what a query may not attend to, masking before or after the softmax, and what leaks without masks."""

import streamlit as st

from model.analysis.padded_batch import run_padded
from model.analysis.softmax import future_mass, mask_orders
from model.analysis.view_arrays import head_arrays
from model.interventions import LiftCausalMask
from model.network.attention import MultiHeadAttention
from model.network.masks import causal_mask, padding_mask
from pages.frame.open_page import open_page
from pages.parts.masks import offer_causal, show_lift, show_orders, show_padding
from pages.widgets.chart import axis_labels, chart
from pages.widgets.controls import tabs
from pages.widgets.explain import explain, show_code
from pages.widgets.export import Picture, export
from pages.widgets.page_links import links
from pages.widgets.proof_strip import proof_strip
from pages.widgets.snippet import Call
from viz.charts.masks import mask_maps
from viz.heatmap import cells_table
from viz.latex import scaled_scores

EXPLAINED = {
    "encoder_self": "The encoder has no causal mask: it reads the whole sentence at once, and only padding is "
    "masked. A single sentence has no padding, so no cell is masked.",
    "decoder_self": "The causal mask hides from each row all tokens after the one it reads, because it has to "
    "predict the next one. In a batch the padding mask is added to it.",
    "cross": "Cross-attention has no causal mask: the source is known from the start, and only padding is masked. A "
    "single sentence has no padding, so no cell is masked.",
}
TABS = {"Padding": show_padding, "Before or after the softmax": show_orders, "Lift the causal mask": show_lift}

view = open_page(__file__)
attention, head = view.attention, view.head
rows, keys = axis_labels(attention)
mask, scaled, pattern = attention.mask[head], attention.pre_softmax[head], attention.pattern[head]
tau = attention.temperature[head]

hidden = int((~mask).sum())
figure = mask_maps(rows, keys, mask, scaled, pattern)
st.markdown(f"{EXPLAINED[view.kind]} Masked here, and hatched: **{hidden} of {mask.size} cells**.")
offer_causal(view)
chart(
    figure,
    key="masks-maps",
    alt="The mask, the scaled scores before and after masking, and the attention weights.",
    roomy=True,
)
unscaled = " This model does not divide its scores by √d_k: they are shown as they are." if attention.undivided else ""
if attention.scale == 1 and not attention.undivided:
    unscaled = " This model divides its queries by √d_k before the product."
if not attention.reads_scaled:
    unscaled += " Shown is what the softmax reads: with the soft cap or the bias that this model gives its scores."
temperature = "" if tau == 1 else f" The softmax divides the scores by τ = {tau:g} first."
st.caption(
    f"Layer {view.layer}, head {head}. Rows are queries, columns keys; maps 2 and 3 share one range."
    f"{unscaled}{temperature}"
)
links(what_if="Mask or unmask single cells and rerun the model")
explain(
    "An unmasked cell keeps its score; a masked one becomes −∞, and its exponential is exactly 0. A masked cell has "
    "no value, so it is hatched rather than coloured.",
    rf"\mathrm{{softmax}}\!\left({scaled_scores(attention)} + M\right)V, \qquad "
    r"M_{ij} = \begin{cases} 0 & i \text{ may attend to } j \\ -\infty & \text{otherwise} \end{cases}",
    "3.2.3",
)
tabs(TABS, "part", view)
show_code(padding_mask, causal_mask, MultiHeadAttention._explicit, run_padded, mask_orders, LiftCausalMask, future_mass)
export(
    view,
    f"masks-{view.place.slug}",
    Call(head_arrays, attention, head, ("mask", "scaled", "pattern")),
    cells_table(rows, keys, {"visible": mask, "scaled_score": scaled, "weight": pattern}),
    (Picture("Mask, scores and weights", "masks-maps", figure),),
)
proof_strip(view)
