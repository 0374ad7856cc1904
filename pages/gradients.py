"""Gradients: how the loss flows back through the run, and whether attention explains what was predicted."""

from pages.frame.render import show_page

show_page(__file__)
