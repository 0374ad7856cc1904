"""Said, and measured: what explanations repeat, held against this run; what they get wrong; the paper's results."""

from model.analysis.sayings import evenness, remove_heads, remove_sublayers, shift_positions, untrained_evenness
from pages.frame.open_page import open_page
from pages.parts.corrections import show_corrections
from pages.parts.paper_results import show_results
from pages.parts.sayings import show_sayings
from pages.widgets.controls import tabs
from pages.widgets.explain import show_code
from pages.widgets.proof_strip import proof_strip

view = open_page(__file__)
tabs(
    {
        "Said, and measured": lambda: show_sayings(view),
        "Often told wrong": show_corrections,
        "The paper's results": lambda: show_results(view),
    },
    "said",
)
show_code(evenness, remove_heads, remove_sublayers, untrained_evenness, shift_positions)
proof_strip(view)
