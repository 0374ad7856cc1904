"""Training: the log of this checkpoint, one step from the inside, attention at earlier steps, our own studies."""

from model.language import later
from pages.frame.render import show_page
from pages.widgets.correction import show_correction
from pages.widgets.live_training import show_live_training
from pages.widgets.page_links import say_where_parts_went

LIVE = {later("Train it in front of you"): show_live_training, later("Fine-tune on a correction"): show_correction}

show_page(__file__, say_where_parts_went, LIVE)
