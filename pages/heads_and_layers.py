"""Heads and layers: every head of every layer in one picture, one of them opened, and each one's statistics."""

from pages.frame.render import show_page

show_page(__file__)
