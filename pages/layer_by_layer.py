"""Layer by layer: one token's way through a stack, what each sub-layer adds, and what it says in words."""

import streamlit as st

from model.analysis.logit_lens import logit_lens
from model.analysis.residual_stream import cosines, layer_norm, measure_stream, neurons, residual_stream
from model.network.feed_forward import FeedForward
from model.network.residual import Residual
from pages.frame.open_page import open_page
from pages.frame.proof_strip import proof_strip
from pages.parts.layer_by_layer import (
    PATH_CHART,
    choose,
    show_inside,
    show_parameters,
    show_path,
    show_similarity,
)
from pages.parts.logit_lens import show_lens, show_neurons
from pages.widgets.explain import explain, show_code
from pages.widgets.export import Picture, export
from pages.widgets.snippet import Recipe
from viz.charts.logit_lens import path_table

view = open_page(__file__)
shown = choose(view)
figure = show_path(shown)
st.caption(
    "Click on a point or a cell to choose its token and step. Dotted lines part the layers. The sidebar's kind, "
    "layer and head matter here only for an attention temperature."
)
pre = view.trace.sublayers[0].placement == "pre"
explain(
    "**x** is a token's vector between two sub-layers, the residual stream. Each sub-layer reads it and adds its own "
    "vector"
    + (
        "; this model norms what a sub-layer reads (pre-norm), unlike the paper's. "
        if pre
        else ", and a layer norm brings the sum back to a common size. "
    )
    + "The **share** says how much of that sum is new: 0 nothing, 0.5 as long as what was there. The **cosines** say "
    "how far the vector has turned: 1 not at all, 0 at right angles.",
    r"x^{(s)} = x^{(s-1)} + \mathrm{Sublayer}(\mathrm{LayerNorm}(x^{(s-1)}))"
    if pre
    else r"x^{(s)} = \mathrm{LayerNorm}\!\left(x^{(s-1)} + \mathrm{Sublayer}(x^{(s-1)})\right)",
    "3.1",
)
views = {
    "Inside one sub-layer": lambda: show_inside(view, shown),
    "Logit lens": lambda: show_lens(view, shown),
    "Neurons": lambda: show_neurons(view, shown),
    "Similarity": lambda: show_similarity(view, shown),
    "Parameters": lambda: show_parameters(view),
}
for tab, show in zip(st.tabs(list(views), key="layers_tab", bind="query-params"), views.values(), strict=True):
    if tab.open:
        with tab:
            show()
show_code(
    Residual,
    FeedForward,
    residual_stream,
    measure_stream,
    layer_norm,
    neurons,
    type(view.translator).read_logits,
    logit_lens,
    cosines,
)
export(
    view,
    f"layers-{shown.stack}",
    {"stream": residual_stream(view.trace, shown.stack), **shown.measures},
    path_table(shown.measures, shown.path.steps, shown.rows),
    (Picture("One token's way", PATH_CHART, figure),),
    Recipe(
        {"stream": f"residual_stream(trace, {shown.stack!r})"} | {name: f"found.{name}" for name in shown.measures},
        ("from model.analysis.residual_stream import measure_stream, residual_stream",),
        (f"found = measure_stream(trace, {shown.stack!r})",),
    ),
)
proof_strip(view)
