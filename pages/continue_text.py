"""Continue a text: what a language model writes after it, how sure it was, and what else it considered."""

from pages.frame.beside.writing import write_on
from pages.frame.render import show_page

show_page(__file__, write_on)
