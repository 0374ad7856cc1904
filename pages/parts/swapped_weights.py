"""Model card, tab "Is attention an explanation?": the disputed experiment on this sentence, on request."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis.swapped_weights import (
    Distances,
    HeadDistances,
    rank_correlation,
    swap_every_head,
    swap_head,
    swap_weights,
    zero_values,
)
from model.interventions import UniformAttention
from pages.compute.on_request import compute_on_request
from pages.compute.view import KINDS, View
from pages.widgets.chart import chart
from pages.widgets.controls import choice
from pages.widgets.explain import explain, show_code
from pages.widgets.export import export_tab
from pages.widgets.page_links import links
from pages.widgets.snippet import Call
from viz.charts.swapped_weights import MEASURES, swap_scatter, zeroing_bars, zeroing_table

SEEDS = tuple(range(20))
WAYS = {"uniform": "Uniform", "permuted": "Shuffled"}
SHORT = {"tv": "Total variation", "jsd": "Jensen-Shannon"}
Progress = Iterator[tuple[float, Any]]
"""fraction done and the result so far; the last one is final"""
Work = Callable[[View], Progress]


def show_explanation(view: View) -> None:
    """Replace attention weights and zero values: how the output changes, and what that implies."""
    explain(
        "**Jain and Wallace (2019)** gave a model *different attention weights* and often got *the same output*: "
        "then the weights are not the unique explanation of the output. **Wiegreffe and Pinter (2019)** replied that "
        "this depends on the definition of explanation: that other weights work as well does not make these wrong, "
        "and weights imposed on a model that never learned them are not a fair alternative. What is certain: a "
        "head's weights state exactly how its output was mixed from the values. They do not state why the model "
        "chose this token.",
        r"\mathrm{TV}(p, q) = \tfrac{1}{2} \textstyle\sum_i |p_i - q_i|, \qquad \mathrm{JSD}(p, q) = \tfrac{1}{2}"
        r"\mathrm{KL}(p \,\|\, m) + \tfrac{1}{2}\mathrm{KL}(q \,\|\, m),\quad m = \tfrac{p + q}{2}",
    )
    _show_swaps(view)
    _show_zeroing(view)
    links(gradients="Gradients, and tokens removed as a referee")
    show_code(swap_weights, swap_every_head, zero_values, rank_correlation)


@st.fragment
def _show_swaps(view: View) -> None:
    st.markdown(
        f"**1. Other weights, same output?** {KINDS[view.kind]}: a head's weights are replaced, by uniform ones or by "
        "its own in shuffled order, and the same translation is scored again. How far did the weights change, and "
        "how far the next-token distribution?"
    )
    one, many = st.columns(2)
    with one:
        alone = _result(view, f"Layer {view.layer}, head {view.head}", "explain_head", _swap_one)
    with many:
        heads = _result(view, "Every head of this kind", "explain_kind", _swap_all)
    if alone:
        _show_one(alone)
    if heads:
        _show_all(view, heads)
    run, calls = (view.translator, view.trace, view.kind), {}
    if alone:
        calls["head"] = Call(swap_head, *run, view.layer, view.head, SEEDS, result=alone)
    if heads:
        calls["kind"] = Call(swap_every_head, *run, result=heads)
    if calls:
        export_tab(view, f"swapped-weights-{view.place.slug}", calls)


def _show_one(runs: list[Distances]) -> None:
    means = [run.means for run in runs]
    uniform = [isinstance(run.intervention, UniformAttention) for run in runs]
    rows = {
        "uniform weights": means[uniform.index(True)],
        f"shuffled, median of {len(SEEDS)}": pd.DataFrame(means[1:]).median().to_dict(),
    }
    names = {f"{what}_{measure}": (what, measure) for measure in MEASURES for what in ("pattern", "output")}
    columns = {
        f"{'weights' if what == 'pattern' else 'output'} moved, {measure.upper()}": [row[name] for row in rows.values()]
        for name, (what, measure) in names.items()
    }
    st.dataframe(pd.DataFrame({"swapped for": list(rows), **columns}), hide_index=True, key="explain_table")
    st.caption(
        "Means over the head's rows, and over the positions of the translation. TV is the total variation distance, "
        "from 0 (identical) to 1 (disjoint); JSD is the Jensen-Shannon divergence, 0 to ln 2 = 0.693 nats."
    )


def _show_all(view: View, heads: HeadDistances) -> None:
    left, right = st.columns(2)
    way = choice("Replaced by", WAYS, "explain_way", place=left)
    measure = choice("Distance", SHORT, "explain_distance", place=right)
    found = getattr(heads, way)
    picture, output = found[f"pattern_{measure}"], found[f"output_{measure}"]
    title = f"{KINDS[view.kind]}: a point a head, its weights {'made uniform' if way == 'uniform' else 'shuffled'}"
    chart(
        swap_scatter(picture, output, measure, (view.layer, view.head), title),
        key="explain-scatter",
        alt="How far each head's weights changed, and how far the output changed with them",
    )
    below = int((output < picture).sum())
    strongest = np.unravel_index(np.nanargmax(output), output.shape)
    st.caption(
        f"{below} of {output.size} heads lie below the dotted line: their weights changed more than the output. The "
        f"output changed most for layer {strongest[0]}, head {strongest[1]}: {output.max():.3f}. Diamond: the "
        "sidebar's head. Colours repeat from layer to layer; hover to see the head."
        + f" Each row is shuffled once here; the table takes the median of {len(SEEDS)} shuffles."
        * (way == "permuted")
    )
    st.markdown(
        "- **What follows:** for a point at the bottom right, the head's weights can be changed drastically without "
        "changing the output: the weights alone do not explain it.\n- **What does not follow:** that attention does "
        "not matter. A point high up is a head whose weights the output depends on; for a low one, other heads or "
        "the residual stream may compensate in this sentence.\n- The model was not trained with these other weights, "
        "and they were replaced one head at a time: Wiegreffe and Pinter's tests, which train an adversarial model, "
        "are not repeated here."
    )


@st.fragment
def _show_zeroing(view: View) -> None:
    st.markdown(
        "**2. What does each key contribute?** Value zeroing (Mohebbi et al. 2023): the value of one key after "
        f"another is set to 0 in layer {view.layer}, head {view.head}, and the change in direction of the layer's "
        "outputs is measured. An attention weight says how much of a value is used; this, how much the value "
        "mattered."
    )
    found = _result(view, "Zero each key's value", "explain_zero", _zero)
    if not found:
        return
    keys = view.attention.key_tokens
    weights, shares = view.attention.pattern[view.head].mean(axis=0), found.share.mean(axis=0)
    chart(zeroing_bars(keys, weights, shares), key="explain-zeroing", alt="Attention weight and value zeroing per key")
    rank = rank_correlation(weights, shares)
    said = "has no rank correlation to state" if np.isnan(rank) else f"Spearman's rank correlation **{rank:+.3f}**"
    st.markdown(f"Attention weights and value zeroing over {len(keys)} keys: {said}.")
    st.caption(
        "Both are means over all rows. Value zeroing: 1 − cosine between the layer's output with and without the "
        "value, each row normalised to sum to 1, like the weights. "
        + "A causal row attends to no later key, so early keys lead in both. " * view.attention.causal
        + "The paper zeroes the value in all heads at once; here only in this head."
    )
    table = zeroing_table(keys, weights, shares, found.change)
    st.dataframe(table, hide_index=True, height=240, key="explain_zero_table")
    call = Call(zero_values, view.translator, view.trace, view.kind, view.layer, view.head, result=found)
    export_tab(view, f"zeroed-values-{view.place.slug}", call)


def _result(view: View, label: str, key: str, work: Work) -> Any:
    place = () if work is _swap_all else (view.layer, view.head)
    return compute_on_request(label, key, (view.trace, view.kind, *place), lambda: work(view))


def _swap_one(view: View) -> Progress:
    runs: list[Distances] = []
    for run in swap_weights(view.translator, view.trace, view.kind, view.layer, view.head, SEEDS):
        runs.append(run)
        yield len(runs) / (1 + len(SEEDS)), runs


def _swap_all(view: View) -> Progress:
    for found in swap_every_head(view.translator, view.trace, view.kind):
        yield found.done, found


def _zero(view: View) -> Progress:
    for found in zero_values(view.translator, view.trace, view.kind, view.layer, view.head):
        yield float(np.isfinite(found.change).mean()), found
