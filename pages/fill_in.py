"""Fill in: what a masked language model puts in place of hidden words, and where it looked for them."""

from pages.frame.beside.hide_words import hide_and_explore
from pages.frame.render import show_page

show_page(__file__, hide_and_explore)
