"""What if: change the running model and compare before and after."""

from pages.frame.render import show_page
from pages.widgets.change_list import edit_changes, with_changes
from pages.widgets.forced_prefix import build_prefix
from pages.widgets.score_question import build_question

show_page(
    __file__,
    with_changes,
    builders={
        **dict.fromkeys(("Outcome", "Each token", "Next word", "Where it moved"), edit_changes),
        "Force a prefix": build_prefix,
        "Which heads matter": build_question,
    },
)
