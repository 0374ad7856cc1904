"""Gradients: how the loss flows back through the run, and whether attention explains what was predicted."""

from model.analysis.attributions import judge, measure_tokens
from model.analysis.gradients import distance_gradients, gradient_times_input, loss_gradients, stream_gradients
from model.analysis.softmax import softmax_jacobian
from pages.frame.open_page import open_page
from pages.parts.gradients import show_distance, show_explanation, show_jacobian, show_stream
from pages.widgets.controls import tabs
from pages.widgets.explain import show_code
from pages.widgets.proof_strip import proof_strip

TABS = {
    "Through the layers": show_stream,
    "Through the softmax": show_jacobian,
    "Over distance": show_distance,
    "Does attention explain?": show_explanation,
}

view = open_page(__file__)
tabs(TABS, "part", view)
show_code(
    loss_gradients,
    stream_gradients,
    softmax_jacobian,
    distance_gradients,
    gradient_times_input,
    measure_tokens,
    judge,
)
proof_strip(view)
