"""Three families: all attention of a translator in one matrix, and how other families mask the same tokens."""

from pages.frame.render import show_page

show_page(__file__)
