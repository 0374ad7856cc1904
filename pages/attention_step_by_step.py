"""Attention, step by step: the formula, the matrices with this run's numbers, and one cell's arithmetic."""

from pages.frame.render import show_page
from pages.widgets.step_row import choose_step

show_page(__file__, choose_step)
