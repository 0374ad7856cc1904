"""Home: a sentence, its translation, where the model looked, and how sure it was of each token."""

import streamlit as st

from model.analysis.aligned_head import alignment_scores
from model.analysis.view_arrays import translation_arrays
from model.generation.search import beam_search, greedy
from pages.frame.open_page import open_page
from pages.frame.sidebar import SEE
from pages.parts import head_importance
from pages.parts import translate as parts
from pages.parts.forced_prefix import HERE, PART
from pages.widgets.canvas import token_chips
from pages.widgets.chart import chart
from pages.widgets.explain import explain, show_code
from pages.widgets.export import Picture, export
from pages.widgets.page_links import cards, link_with
from pages.widgets.proof_strip import proof_strip
from pages.widgets.snippet import Call
from viz import html, theme
from viz.charts import translate
from viz.tokens import decoder_rows

view = open_page(__file__)
trace = view.trace
rows = decoder_rows(trace.tgt_tokens, trace.next_tokens)
written = trace.target_probabilities

st.html(html.sentence(trace.translation, trace.source))
parts.show_unfamiliar(view)
parts.translate_long_text(view)
st.header("Where the model looked", anchor=False)
alignment = parts.choose_alignment(view)
figure = translate.alignment_map(alignment.weights, trace.src_tokens, rows)
# The map of a long sentence takes the whole width.
left, right = (st.container(), st.container()) if len(trace.src_tokens) > 18 else st.columns([2, 3], gap="medium")
with left:
    between = parts.draw_alignment_lines(view, alignment)
with right:
    chart(figure, key="alignment-map", alt=alignment.what)
st.caption(
    f"{alignment.what}. Each row is one step of the decoder; thick lines and bright cells mark the source tokens it "
    "read from."
)
parts.link_to_alignment(alignment)
parts.show_example(view)
st.html(html.chips("Source tokens and their ids", trace.src_tokens, trace.src_ids, theme.ENCODER))
target_chips = st.container()

st.header("How sure the model was", anchor=False)
left, right = st.columns(2, gap="large")
with left:
    position = parts.choose_position(rows)
    with target_chips:
        title = "Target tokens, their ids, and the probability the model gave each; click one for its alternatives"
        boxes = html.chips(title, trace.next_tokens, trace.next_ids, theme.DECODER, written, position)
        token_chips(boxes, "target-chips", parts.choose_at)
    certainty = translate.certainty_bars(trace.next_tokens, written, position)
    chart(
        certainty,
        key=parts.POSITION_CHART,
        on_select=parts.choose_clicked_position,
        alt="Probability of each token of the translation",
    )
with right:
    here = (trace.next_tokens[position], trace.next_ids[position], written[position])
    names, shares, chosen = translate.rank_candidates(trace.candidates[position], here)
    st.caption(
        f"The most probable tokens at position {position}, and all others combined. Bold: the token in the translation."
    )
    with st.container(horizontal=True):
        link_with("Force another word here", "what_if", part=PART, **{HERE: str(position)})
        asked = {"which_score": head_importance.SCORED["token"], head_importance.AT: rows[position]}
        see = {SEE: f"cross.{alignment.layer}.{alignment.head or 0}"}
        link_with("Which heads chose it?", "what_if", part=head_importance.PART, **see, **asked)
    best = translate.alternative_bars(names, shares, chosen, trace.logits.shape[-1])
    chart(best, key="runners-up", alt=f"The most probable tokens at position {position}")

st.header("Look inside", anchor=False)
cards(__file__)

explain(
    "At every step the decoder gives each token of the vocabulary a score, its logit; the softmax turns the logits "
    "into probabilities. Greedy decoding takes the most probable token at each step. Beam search keeps several "
    "prefixes and returns the best finished sentence it found, ranked by log p(Y | X) / lp(Y) with a length penalty "
    "lp (section 6.1): its tokens need not be the most probable ones at their steps, and neither need those of a "
    "target that you type.",
    latex=r"p(y_{t+1} \mid y_1 \dots y_t,\, x) = \mathrm{softmax}(\mathrm{logits}_t)_{y_{t+1}}",
    section="3.4",
)
show_code(greedy, beam_search, alignment_scores)
export(
    view,
    "translation",
    Call(translation_arrays, trace, alignment.layer, alignment.head),
    translate.probability_table(trace.next_tokens, trace.next_ids, written),
    (Picture("Map", "alignment-map", figure), Picture("Lines", parts.ALIGNMENT_LINES, between)),
)
proof_strip(view)
