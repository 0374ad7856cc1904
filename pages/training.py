"""Training: the log of this checkpoint, learning rate, label smoothing, attention at earlier steps, our own studies."""

from pages.frame.render import show_page
from pages.widgets.page_links import say_where_parts_went

show_page(__file__, say_where_parts_went)
