"""Often told wrong: what explanations repeat, held against this run where it can tell."""

from pages.frame.render import show_page

show_page(__file__)
