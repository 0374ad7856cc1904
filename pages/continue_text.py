"""Continue a text: what a language model writes after it, how sure it was, and what else it considered."""

from pages.frame.render import show_page
from pages.frame.writing import write_on

show_page(__file__, write_on)
