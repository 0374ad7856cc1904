"""Model card: scores, size and configuration of this checkpoint, and the cost of its attention."""

from pages.frame.render import show_page

show_page(__file__)
