"""Tokens and embeddings: how a text is split into tokens, and the vectors that the first layer reads for them."""

from pages.frame.render import show_page

show_page(__file__)
