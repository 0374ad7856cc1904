"""Positional encoding: what the model adds to its embeddings or does in its attention, and runs without it."""

from pages.frame.render import show_page

show_page(__file__)
