"""Heads and layers: every head of every layer in one picture, one of them opened, and each one's statistics."""

import streamlit as st

from model.analysis import head_summary, head_weights, induction, silver_alignments, words
from model.analysis import head_tables as tables
from model.analysis.head_tables import head_tables
from model.network.attention import MultiHeadAttention
from pages.frame.changes import switch_off_link
from pages.frame.open_page import open_page
from pages.parts import heads_and_layers as parts
from pages.parts.head_table import describe_head, show_rules, show_table, summarise_heads
from pages.parts.head_weights import show_weights
from pages.parts.many_sentences import show_many_sentences
from pages.widgets.controls import tabs
from pages.widgets.explain import show_code
from pages.widgets.export import Picture, export
from pages.widgets.page_links import link_with, links
from pages.widgets.proof_strip import proof_strip
from viz.heatmap import cells_table

view = open_page(__file__)
shown = parts.choose_look(view)
with st.container(key="all-and-one"):
    left, right = st.columns([11, 9])
with left:
    overview = parts.show_mosaic(shown)
    found = summarise_heads(view)
    describe_head(shown, found)
    st.text(parts.describe_removed(shown))
    with st.container(horizontal=True):
        links(attention_step_by_step="This head, step by step")
        link_with("What if this head were off?", "what_if", **switch_off_link(view.kind, view.layer, view.head))
with right.container(key=parts.OPENED):
    figure, between = parts.show_head(shown)
parts.explain_numbers(shown)
tabs(
    {
        "All heads in numbers": lambda: show_table(shown, found),
        "Over many sentences": lambda: show_many_sentences(view, found),
        "Weights of the head": lambda: show_weights(view),
        "Rules and formulas": lambda: show_rules(view.attention.crosses),
    },
    "heads_part",
)
show_code(
    MultiHeadAttention._explicit,
    tables.norm_weighted,
    tables.rollout,
    words.merge,
    words.word_groups,
    words.hide_keys,
    head_tables,
    head_summary.summarise,
    head_summary._measure,
    head_summary.name_type,
    head_weights.singular_values,
    head_weights._of_product,
    head_weights.promoted_logits,
    head_weights.copy_score,
    induction.induction_scores,
    silver_alignments.count_links,
    silver_alignments.alignment_error_rate,
)
export(
    view,
    f"heads-{view.kind}-{shown.place.replace(',', '').replace(' ', '-')}",
    parts.arrays(shown),
    cells_table(shown.rows, shown.keys, {"visible": shown.mask, "value": shown.values}),
    (
        Picture("All heads", parts.MOSAIC, overview),
        Picture(f"Map of {shown.place}", parts.MAP, figure),
        Picture(f"Lines of {shown.place}", parts.HEAD_LINES, between),
    ),
)
proof_strip(view)
