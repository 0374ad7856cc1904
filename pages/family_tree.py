"""Family tree: models since 2017, computed from their published sizes."""

from pages.frame.render import show_page

show_page(__file__)
