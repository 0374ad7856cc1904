"""Efficient attention: what spares the n x n matrix, on the q, k and v of this run."""

from model.analysis.flash import flash_attention, fused_kernel
from pages.frame.open_page import open_page
from pages.parts import efficient_attention as parts
from pages.widgets.controls import tabs
from pages.widgets.explain import show_code
from pages.widgets.proof_strip import proof_strip

view = open_page(__file__)
tabs({"FlashAttention, tile by tile": lambda: parts.show_flash(view)}, "efficient")
show_code(flash_attention, fused_kernel)
proof_strip(view)
