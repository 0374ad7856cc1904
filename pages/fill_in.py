"""Fill in: what a masked language model puts in place of hidden words, and where it looked for them."""

import streamlit as st

from model.analysis.view_arrays import fill_arrays
from model.checkpoints.masked_model import MaskedModel
from pages.frame.open_page import open_page
from pages.parts import fill_in as parts
from pages.widgets.chart import chart
from pages.widgets.explain import explain, show_code
from pages.widgets.export import Picture, export
from pages.widgets.proof_strip import proof_strip
from pages.widgets.snippet import Call
from viz import html
from viz.charts import fill_in, translate
from viz.tokens import numbered

view = open_page(__file__)
trace = view.trace
arrays = Call(fill_arrays, view.translator, trace)
places = arrays.result["positions"].tolist()
parts.offer_words(view)
pictures = ()
if places:
    st.html(html.word_diff(view.source, trace.translation))
    place = parts.choose_mask(places, trace)
    left, right = st.columns(2, gap="large")
    with left:
        probability = float(trace.target_probabilities[place])
        filled = (trace.next_tokens[place], trace.next_ids[place], probability)
        names, shares, chosen = translate.rank_candidates(trace.candidates[place], filled)
        st.caption(
            f"The most probable tokens at position {place}, and all others combined. Bold: the one that is filled in."
        )
        best = translate.alternative_bars(names, shares, chosen, trace.logits.shape[-1])
        chart(best, key="fill-candidates", alt=f"The most probable tokens at position {place}")
    with right:
        st.caption(f"Where the hidden token at position {place} looked: {view.place.title}. Each bar is a key.")
        weights = fill_in.row_weights(numbered(view.attention.key_tokens), view.attention.pattern[view.head][place])
        chart(weights, key="fill-weights", alt=f"Attention weights of position {place} over all tokens")
    pictures = (Picture("Candidates", "fill-candidates", best), Picture("Weights", "fill-weights", weights))
else:
    parts.say_nothing_hidden(view)
explain(
    "The model reads the whole text at once, from both sides, and was trained to guess tokens that are hidden from it. "
    "Each row of its output gives a probability to every token of the vocabulary for its own position. A token that is "
    "not hidden it can simply read, so only the hidden ones are a question (Devlin et al. 2019, “BERT: Pre-training of "
    "Deep Bidirectional Transformers”, section 3.1).",
    latex=r"p(x_t \mid x_1 \dots x_{t-1}, \text{mask}, x_{t+1} \dots x_n)",
)
show_code(MaskedModel.fill)
export(view, "fill-in", arrays, parts.list_candidates(trace, places), pictures)
proof_strip(view)
