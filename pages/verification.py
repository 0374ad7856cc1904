"""Verification: the claims that every picture shows what the model computed, measured on this run."""

import streamlit as st

from model.proof.checks import chain_closes, rows_sum_to_one
from model.proof.claims import in_double_precision, measure_claim
from model.proof.rerun_measures import causality
from pages.compute.on_request import TIMER, pressed
from pages.frame.open_page import open_page
from pages.parts import verification as parts
from pages.widgets.chart import chart
from pages.widgets.controls import tabs
from pages.widgets.explain import explain, show_code
from pages.widgets.export import Picture, export
from pages.widgets.proof_strip import proof_strip
from viz.charts.verification import errors_chart

STEPS = "Every step of this run"
TABS = {"Measured on this run": parts.show_table, "All twenty in plain words": parts.show_words}

view = open_page(__file__)
summary, picture, below = st.container(), st.container(), st.container()
found = parts.measure(view, slow=False)
slot = below.empty()
if left := parts.waiting(found):
    with slot.container():
        wanted = pressed(f"Measure the other {left} too (they run the model many times)", "claims-slow", TIMER)
    if wanted:
        with below:
            found = parts.measure(view, slow=True)
if not parts.waiting(found):
    slot.caption("Every measurable claim has been measured on this run.")
with summary:
    parts.show_summary(found)
with picture:
    figure = errors_chart(parts.rows(found))
    chart(figure, key="claims-errors", alt="Error of each claim in single and in double precision, and its tolerance.")
    parts.explain_numbering()
    parts.explain_gaps(view, found)
explain(
    "Floating-point numbers are rounded: single precision keeps about seven significant digits, double precision "
    "sixteen. So the same run of a model of this project is computed in both. **Rounding error shrinks by nine orders "
    "of magnitude, from the right dotted line to the left one. A bug would not**: a wrong head, a transposed matrix or "
    "a bias counted twice is equally wrong in both.",
    r"\varepsilon_{\text{single}} = 2^{-23} \approx 1.2 \cdot 10^{-7}, \qquad "
    r"\varepsilon_{\text{double}} = 2^{-52} \approx 2.2 \cdot 10^{-16}",
)
tabs(TABS | {STEPS: lambda _: parts.show_steps(view)}, "claims", found)
show_code(measure_claim, in_double_precision, chain_closes, rows_sum_to_one, causality)
export(
    view,
    "verification",
    parts.arrays(view, found),
    parts.table(found),
    (Picture("Error of each claim", "claims-errors", figure),),
)
proof_strip(view)
