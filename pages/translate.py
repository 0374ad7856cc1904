"""Home: a sentence, its translation, where the model looked, and how sure it was of each token."""

from pages.frame.beside.home import show_cards, show_translation
from pages.frame.render import show_page

show_page(__file__, show_translation)
show_cards(__file__)
