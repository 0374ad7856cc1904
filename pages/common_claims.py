"""Common claims, tested: what explanations repeat, held against this run."""

from pages.frame.render import show_page

show_page(__file__)
