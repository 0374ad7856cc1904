"""Side by side: two heads, two sentences or two checkpoints on one colour scale, with the difference."""

from pages.frame.beside.right_side import choose_right
from pages.frame.render import show_page

show_page(__file__, choose_right)
