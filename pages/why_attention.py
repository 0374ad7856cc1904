"""Why attention: cost of a layer and path length of information in it, counted and timed (section 4)."""

import pandas as pd
import streamlit as st

from model.background import scoring_functions, table_1
from model.background.lstm import layer_contenders
from model.background.rivals import AdditiveAttention, RecurrentTranslator, loss_gradient
from model.background.sizes import self_attention_layer
from model.background.stopwatch import measure
from model.background.table_1 import layer_costs
from pages.frame.open_page import open_page
from pages.parts.rivals import show_comparison, show_rivals
from pages.parts.why_attention import show_measured, show_paths, show_scoring
from pages.widgets.chart import chart
from pages.widgets.controls import slider, table, tabs
from pages.widgets.explain import explain, show_code
from pages.widgets.export import Picture, export
from pages.widgets.proof_strip import proof_strip
from pages.widgets.snippet import Call
from viz.charts.model_card import lengths_to_plot
from viz.charts.why_attention import compare_costs, layer_cost_table, operations_chart

view = open_page(__file__)
config = view.translator.config
n, d = len(next(iter(view.trace.streams.values())).tokens), config.d_model
left, right = st.columns(2)
k = slider("Kernel width k of the convolution", (2, 15), 3, "kernel", place=left)
r = slider("Neighbours r of restricted self-attention", (2, 64), 8, "neighbours", place=right)

here = layer_costs(n, d, k, r)
lengths = lengths_to_plot(n, d)
arrays = Call(table_1.operations_by_length, lengths.tolist(), d, k, r)
curves = dict(zip(here, arrays.result["operations"], strict=True))
attention, matrix = (here[name].operations for name in ("Self-attention", "Recurrent"))
whole = self_attention_layer(config, n).total
lstm = table_1.lstm_work(n, d)
st.markdown(
    f"Your sentence has **n = {n}** tokens, this model's layers are **d = {d}** wide. By the terms of Table 1, n² d "
    f"and n d², self-attention takes **{compare_costs(attention, matrix)}** a recurrent layer, in 1 sequential step "
    f"instead of {n}. In full counts, with its projections, it takes {whole / 1e6:,.3g} million multiply-adds: "
    f"**{compare_costs(whole, matrix)}** one recurrent matrix ({matrix / 1e6:,.3g} million) and "
    f"**{compare_costs(whole, lstm)}** an LSTM ({lstm / 1e6:,.3g} million)."
)
figure = operations_chart(lengths, curves, {name: cost.operations for name, cost in here.items()}, n, d)
chart(
    figure, key="why-operations", alt="Operations per layer as a function of sentence length, for four kinds of layer."
)
costs = {name: (cost.operations, cost.sequential, cost.path) for name, cost in here.items()}
table(layer_cost_table(costs))
explain(
    f"The paper's Table 1 for n = {n}, d = {d}, k = {k}, r = {r}. Its orders of growth omit constants: Q Kᵀ alone "
    "takes n² d multiply-adds, a complete attention layer 2 n² d + 4 n d², one recurrent matrix n d², an LSTM 8 n "
    "d². Sequential operations cannot be parallelised, however many processors there are. Maximum path length is the "
    "number of steps between the two most distant positions; for the convolution it is logarithmic with dilated "
    "kernels.",
    r"n^2 d < n\,d^2 \iff n < d",
    "4, Table 1",
)
tabs(
    {
        "Path length": lambda: show_paths(view, k, r),
        "Recurrence and attention": lambda: show_rivals(view),
        "Three models compared": lambda: show_comparison(view),
        "Measured": lambda: show_measured(view),
        "Scoring functions": lambda: show_scoring(view),
    },
    "why",
)
show_code(
    *(layer_costs, table_1.self_attention, table_1.recurrent, table_1.convolutional, table_1.restricted),
    *(table_1.dilated_path, table_1.restricted_path, layer_contenders, measure),
    *(
        scoring_functions.multiplicative,
        scoring_functions.dot_product,
        scoring_functions.additive,
        scoring_functions.scoring_costs,
    ),
    *(RecurrentTranslator, AdditiveAttention, loss_gradient),
)
export(
    view,
    "why-attention",
    arrays,
    pd.DataFrame({"n": lengths, **curves}),
    (Picture("Operations by sentence length", "why-operations", figure),),
)
proof_strip(view)
