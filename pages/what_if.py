"""What if: change the running model and compare before and after."""

from dataclasses import replace

import streamlit as st

from model.analysis.two_runs import before_and_after, largest_changes
from model.interventions import MaskEdit, applied
from model.needs import Need
from model.trace import log_probabilities
from model.tracer import build_trace
from pages.frame.changes import current_changes, list_version
from pages.frame.open_page import open_page
from pages.parts import what_if as parts
from pages.parts.change_builder import build
from pages.parts.change_list import show_experiments, show_list
from pages.parts.forced_prefix import show_prefix
from pages.parts.head_importance import show_which_heads
from pages.parts.mistakes import show_mistakes
from pages.widgets.chart import axis_labels
from pages.widgets.controls import tabs
from pages.widgets.explain import explain, show_code
from pages.widgets.export import Picture, export
from pages.widgets.page_links import links
from pages.widgets.proof_strip import proof_strip
from pages.widgets.snippet import Call
from viz.heatmap import cells_table

TABS = {
    "Each token": parts.show_tokens,
    "Next word": parts.show_candidates,
    "Where it moved": parts.show_heads,
    "Force a prefix": lambda view, _runs: show_prefix(view),
    "Which heads matter": lambda view, _runs: show_which_heads(view),
    "Broken on purpose": lambda view, _runs: show_mistakes(view),
}
TRANSLATORS = ("Force a prefix", "Which heads matter")
"""tabs that search for a translation"""
OWN = ("Broken on purpose",)
"""tabs that need the code of the layers"""

view = open_page(__file__)
changes = current_changes(view.translator)
left, right = st.columns(2)
with left.container(border=True, height=400, key="what-if-builder"):
    build(view, list_version())
with right.container(border=True, height=400, key="what-if-list"):
    show_list(view, changes)
show_experiments(view)
runs = parts.compare(view, changes)
place = parts.show_same(runs)
figure = parts.show_maps(view, runs, changes)
with place:
    new = parts.show_new(view, runs)
features = view.translator.features
left_out = set() if {Need.CROSS_ATTENTION, Need.OWN_LAYERS} <= features else set(TRANSLATORS)
left_out |= set() if Need.OWN_LAYERS in features else set(OWN)
tabs({name: show for name, show in TABS.items() if name not in left_out}, "part", view, runs)
with st.container(horizontal=True):
    links(heads_and_layers="This head among all others", attention_step_by_step="This head, step by step")
explain(
    "**Same target** measures how probable the old text is under the changed model, teacher-forced, so that "
    "both runs have the same rows and cells. **Decode again** lets the changed model generate freely: one different "
    "token can change everything after it. A change that lowers the probability shows that the model used what was "
    "changed; if nothing happens, other heads may have compensated.",
    r"\log p(y \mid x) = \sum_t \log p(y_t \mid y_{<t},\, x)",
    "3.4",
)
changed = replace(view, trace=runs.after)
show_code(*dict.fromkeys(map(type, changes or (MaskEdit(),))), applied, build_trace, log_probabilities, largest_changes)
rows, keys = axis_labels(view.attention)
before, after = (trace.attention(view.kind, view.layer).pattern[view.head] for trace in (runs.before, runs.after))
table = cells_table(rows, keys, {"before": before, "after": after, "difference": after - before})
stem = f"what-if-{view.place.slug}"
shown = (Picture("Before, after and difference", parts.map_key(), figure),)
arrays = Call(before_and_after, runs.before, runs.after, new, view.kind, view.layer, view.head)
export(changed, stem, arrays, table, shown)
proof_strip(changed)
