"""Three families: all attention of a translator in one matrix, and how other families mask the same tokens."""

import streamlit as st

from model.analysis.three_families import causal_encoder, family_masks, join_attention
from model.network.masks import causal_mask
from pages.frame.open_page import open_page
from pages.parts import three_families as parts
from pages.widgets.chart import chart
from pages.widgets.controls import tabs
from pages.widgets.explain import explain, show_code
from pages.widgets.export import Picture, export
from pages.widgets.proof_strip import proof_strip
from pages.widgets.snippet import Call
from viz.charts.three_families import joined_map
from viz.heatmap import cells_table
from viz.latex import scaled_scores

view = open_page(__file__)
call = Call(join_attention, view.trace, view.layer, view.head)
joined, names = call.result, parts.token_names(view)
n, m = len(view.trace.src_ids), len(view.trace.tgt_tokens)
figure = joined_map(names, joined["weights"], joined["mask"], n)
chart(figure, key="families-joined", alt="The attention weights of encoder, cross and decoder attention as one matrix")
st.caption(
    f"Layer {view.layer}, head {view.head} of each attention. Rows are queries, columns keys: tokens 0 to {n - 1} are "
    f"the source's, {n} to {n + m - 1} the target's. Above left: encoder self-attention; below left: cross-attention; "
    "below right: decoder self-attention. Each of the three has its own softmax and its own weights, so a source row "
    "sums to 1, and a target row sums to 1 on either side of the line. Hatched: no weight is computed there."
)
tabs({"Masks of the families": parts.show_masks, "A causal encoder": parts.show_one_way}, "families_part", view)
st.header("Open one of each", anchor=False)
parts.offer_checkpoints(view)
explain(
    "An encoder reads a text in both directions; a decoder writes one from left to right, so its tokens may not see "
    "the future they are trained to predict. The paper's translator has both, and cross-attention between them.",
    rf"\mathrm{{softmax}}\!\left({scaled_scores(view.attention)} + M\right)V, \qquad "
    r"M_{ij} = \begin{cases} 0 & i \text{ may attend to } j \\ -\infty & \text{otherwise} \end{cases}",
    "3.2.3",
)
show_code(join_attention, family_masks, causal_encoder, causal_mask)
export(
    view,
    f"three-families-layer-{view.layer}-head-{view.head}",
    call,
    cells_table(names, names, {"visible": joined["mask"], "weight": joined["weights"]}),
    (Picture("One matrix", "families-joined", figure),),
)
proof_strip(view)
