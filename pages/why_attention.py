"""Why attention: cost of a layer and path length of information in it, counted and timed (section 4)."""

from pages.frame.render import show_page

show_page(__file__)
