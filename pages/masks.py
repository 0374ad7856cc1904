"""Masks: what a query may not attend to, masking before or after the softmax, and what leaks without masks."""

from pages.frame.render import show_page

show_page(__file__)
