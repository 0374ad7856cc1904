"""Continue a text: what a language model writes after it, how sure it was, and what else it considered."""

import streamlit as st

from model.analysis.view_arrays import continuation_arrays
from model.checkpoints.language_model import LanguageModel
from model.generation.sampling import sampling_distribution
from pages.frame.open_page import open_page
from pages.parts import continue_text as parts
from pages.parts.translate import POSITION_CHART, choose_clicked_position, choose_position
from pages.widgets.chart import chart
from pages.widgets.explain import explain, show_code
from pages.widgets.export import Picture, export
from pages.widgets.proof_strip import proof_strip
from pages.widgets.snippet import Call
from viz import html, theme
from viz.charts import translate
from viz.tokens import decoder_rows

view = open_page(__file__)
view = parts.choose_continuation(view)
trace = view.trace
written = trace.target_probabilities
rows = decoder_rows(trace.tgt_tokens, trace.next_tokens)

if turns := trace.streams["decoder"].tokens.turns:
    parts.show_chat(turns, trace.written)
else:
    st.html(html.continued(trace.source, trace.written))
parts.say_probability(trace)
st.html(
    html.chips(
        "Tokens, their ids, and the probability the model gave each",
        trace.next_tokens,
        trace.next_ids,
        theme.DECODER,
        written,
    )
)

st.header("How sure the model was", anchor=False)
left, right = st.columns(2, gap="large")
with left:
    position = choose_position(rows)
    certainty = translate.certainty_bars(trace.next_tokens, written, position)
    chart(certainty, key=POSITION_CHART, on_select=choose_clicked_position, alt="Probability of each token of the text")
with right:
    here = (trace.next_tokens[position], trace.next_ids[position], written[position])
    names, shares, chosen = translate.rank_candidates(trace.candidates[position], here)
    st.caption(
        f"The most probable tokens at position {position}, and all others combined, as the model has them: at "
        "temperature 1. Bold: the token of the text."
    )
    best = translate.alternative_bars(names, shares, chosen, trace.logits.shape[-1])
    chart(best, key="runners-up", alt=f"The most probable tokens at position {position}")

explain(
    "The model reads the text from left to right; each row gives a probability to every token of the vocabulary, for "
    "the one that follows. To write, it takes the most probable token, or draws one, appends it, and reads on. The "
    "temperature T divides the logits before a token is drawn; top-k and top-p then cut what is improbable.",
    latex=r"\log p(y) = \sum_t \log p(y_{t+1} \mid y_1 \dots y_t)",
)
show_code(LanguageModel.continue_text, LanguageModel.log_probability, sampling_distribution)
export(
    view,
    "continuation",
    Call(continuation_arrays, trace),
    translate.probability_table(trace.next_tokens, trace.next_ids, written),
    (Picture("Probability of each token", POSITION_CHART, certainty),),
)
proof_strip(view)
