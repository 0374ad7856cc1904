"""Fill in: what a masked language model puts in place of hidden words, and where it looked for them."""

from pages.frame.render import show_page
from pages.parts.fill_in import offer_words

show_page(__file__, offer_words)
