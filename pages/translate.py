"""Home: a sentence, its translation, where the model looked, and how sure it was of each word."""

import streamlit as st

from model.generation.search import beam_search, greedy
from pages.frame.open_page import open_page
from pages.frame.proof_strip import proof_strip
from pages.parts.translate import (
    ALIGNMENT_LINES,
    POSITION_CHART,
    alignment_code,
    alignment_lines,
    alignment_weights,
    position_clicked,
    show_example,
    target_position,
    whole_translation,
)
from pages.widgets.chart import chart
from pages.widgets.explain import explain, show_code
from pages.widgets.export import Picture, export
from pages.widgets.page_links import cards
from pages.widgets.snippet import Recipe
from viz import html, theme
from viz.charts import translate
from viz.tokens import decoder_rows

view = open_page(__file__)
trace = view.trace
rows = decoder_rows(trace.tgt_tokens, trace.next_tokens)
probabilities = trace.probabilities
written = trace.target_probabilities

st.html(html.sentence(trace.translation))
whole_translation(view)
st.header("Where the model looked", anchor=False)
weights, what = alignment_weights(view)
alignment = translate.alignment(weights, trace.src_tokens, rows)
left, right = st.columns([2, 3], gap="medium")
with left:
    between = alignment_lines(view, weights, what)
with right:
    chart(alignment, key="alignment-map", alt=what, roomy=True)
st.caption(
    f"{what}. Each row is one step of the decoder; thick lines and bright cells are the source tokens that it read "
    "from. Layer and head are chosen in the sidebar."
)
show_example(view)
st.html(html.chips("Source tokens and their ids", trace.src_tokens, trace.src_ids, theme.ENCODER))
st.html(
    html.chips(
        "Target tokens, their ids, and how probable the model found each",
        trace.next_tokens,
        trace.next_ids,
        theme.DECODER,
        written,
    )
)

st.header("How sure the model was", anchor=False)
left, right = st.columns(2, gap="large")
with left:
    position = target_position(rows)
    certainty = translate.certainty(trace.next_tokens, written, position)
    chart(certainty, key=POSITION_CHART, on_select=position_clicked, alt="Probability of each token of the translation")
with right:
    here = (trace.next_tokens[position], trace.next_ids[position], written[position])
    names, shares, chosen = translate.ranking(trace.candidates[position], here)
    st.caption(
        f"The most probable tokens at position {position}, and all the others together. Bold: the translation's."
    )
    best = translate.runners_up(names, shares, chosen, trace.logits.shape[-1])
    chart(best, key="runners-up", alt=f"The most probable tokens at position {position}")

st.header("Look inside", anchor=False)
cards(__file__)

explain(
    "At every step the decoder gives each token of the vocabulary a number, its logit; the softmax makes them "
    "probabilities. Greedy decoding takes the most probable token of each step. Beam search looks for the sentence "
    "that is most probable as a whole: a token of it need not be the first of its step, nor need one that you typed.",
    latex=r"p(y_{t+1} \mid y_1 \dots y_t,\, x) = \mathrm{softmax}(h_t W)_{y_{t+1}}",
    section="3.4",
)
show_code(greedy, beam_search)
export(
    view,
    "translation",
    {"alignment": weights, "probability": written, "logits": trace.logits},
    translate.probability_table(trace.next_tokens, trace.next_ids, written),
    (Picture("Map", "alignment-map", alignment), Picture("Lines", ALIGNMENT_LINES, between)),
    Recipe(
        {
            "alignment": alignment_code(view),
            "probability": "trace.target_probabilities",
            "logits": "trace.logits",
        }
    ),
)
proof_strip(view)
