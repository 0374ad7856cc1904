"""Layer by layer: one token's residual stream, what each sub-layer adds to it, and what it predicts."""

import streamlit as st

from model.analysis.logit_lens import logit_lens
from model.analysis.residual_stream import cosines, layer_norm, measure_stream, neurons, residual_stream
from model.analysis.view_arrays import stream_arrays
from model.needs import Need
from model.network.feed_forward import FeedForward
from model.network.residual import Residual
from pages.frame.open_page import open_page
from pages.parts import layer_by_layer as parts
from pages.parts.logit_lens import has_neurons, show_lens, show_neurons
from pages.widgets.controls import tabs
from pages.widgets.explain import explain, show_code
from pages.widgets.export import Picture, export
from pages.widgets.proof_strip import proof_strip
from pages.widgets.snippet import Call
from viz.charts.layer_by_layer import path_table
from viz.latex import multiplied

view = open_page(__file__)
shown = parts.choose(view)
figure = parts.show_path(shown)
st.caption(
    "Click on a point or a cell to choose its token and step. Dotted lines separate the layers. The kind, layer and "
    "head in the sidebar matter here only for an attention temperature."
)
placement, norm = parts.norm_of_model(view.trace)
where, formula = parts.PLACEMENTS[placement]
explain(
    "**x** is a token's vector between two sub-layers, its residual stream. Each sub-layer reads it and adds its "
    f"output to it{where} The **share** is how much of that sum is new: 0 means nothing, 0.5 that the output is as "
    "long as the stream itself. The **cosines** show how far the vector has turned: 1 means not at all, 0 that it is "
    "orthogonal." + parts.DROPOUT * (Need.OWN_LAYERS in view.translator.features),
    multiplied(formula.replace("Norm", norm), view.trace.sublayers[-1].multiplier),
    "3.1",
)
views = {
    "Inside one sub-layer": lambda: parts.show_inside(view, shown),
    "Logit lens": lambda: show_lens(view, shown),
    "Neurons": lambda: show_neurons(view, shown),
    "Similarity": lambda: parts.show_similarity(view, shown),
    "Parameters": lambda: parts.show_parameters(view),
}
left_out = set() if Need.LOGITS in view.translator.features else {"Logit lens", "Neurons"}
left_out |= set() if has_neurons(view) else {"Neurons"}
tabs({name: show for name, show in views.items() if name not in left_out}, "layers_tab")
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
    Call(stream_arrays, view.trace, shown.stack, tuple(shown.measures)),
    path_table(shown.measures, shown.path.steps, shown.rows),
    (Picture("One token's residual stream", parts.PATH_CHART, figure),),
)
proof_strip(view)
