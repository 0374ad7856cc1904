"""Layer by layer: one token's residual stream, what each sub-layer adds to it, and what it predicts."""

from pages.frame.render import show_page

show_page(__file__)
