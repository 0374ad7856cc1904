"""Efficient attention: what spares the n x n matrix, on the q, k and v of this run."""

from model.analysis.flash import flash_attention, fused_kernel
from model.analysis.linear_attention import (
    draw_omega,
    kernel_weights,
    linear_attention,
    positive_features,
    recurrent_attention,
)
from model.analysis.long_run import largest, long_run, open_row, open_window, with_positions
from model.analysis.sparse_patterns import kept_cells, measure_kept, measure_sinks, sink_changes, sweep_sizes
from model.background.attention_costs import attention_costs, eager_attention, elu_attention
from model.network.masks import pattern_mask
from pages.frame.open_page import open_page
from pages.parts import efficient_attention as parts
from pages.parts import long_text, sparse_patterns
from pages.widgets.controls import tabs
from pages.widgets.explain import show_code
from pages.widgets.proof_strip import proof_strip

view = open_page(__file__)
tabs(
    {
        "FlashAttention, tile by tile": lambda: parts.show_flash(view),
        "Linear attention": lambda: parts.show_linear(view),
        "Patterns": lambda: sparse_patterns.show_patterns(view),
        "Sinks": lambda: sparse_patterns.show_sinks(view),
        "Long text": lambda: long_text.show_long_text(view),
        "Cost over n": lambda: parts.show_cost(view),
    },
    "efficient",
)
show_code(
    *(flash_attention, fused_kernel),
    *(positive_features, draw_omega, kernel_weights, recurrent_attention, linear_attention),
    *(pattern_mask, kept_cells, measure_kept, sweep_sizes, measure_sinks, sink_changes),
    *(long_run, with_positions, largest, open_window, open_row),
    *(attention_costs, eager_attention, elu_attention),
)
proof_strip(view)
