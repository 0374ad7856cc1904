"""Efficient attention: what spares the n x n matrix, on the q, k and v of this run."""

from model.analysis.long.long_run import largest, long_run, open_row, open_window, with_positions
from model.language import later
from pages.frame.render import show_page
from pages.widgets.long_text import show_long_text

show_page(
    __file__,
    widgets={later("Long text"): show_long_text},
    code=(long_run, with_positions, largest, open_window, open_row),
)
