"""Temperature, tabs "Divided by √d_k" and "Many temperatures"."""

import math
from dataclasses import replace

import numpy as np
import streamlit as st

from model.analysis import tab_arrays as tab
from model.analysis.distributions import entropy
from model.analysis.softmax import (
    mean_entropy,
    product_statistics,
    softmax_at,
)
from model.analysis.view_arrays import head_arrays
from model.interventions import AttentionTemperature, Unscaled
from model.trace import Attention, Trace
from pages.compute.runs import rerun, run
from pages.compute.view import View
from pages.parts.temperature import (
    run_plain,
    show_probabilities,
    show_texts,
)
from pages.widgets.chart import axis_labels, chart
from pages.widgets.export import export_tab
from pages.widgets.glossary import define
from pages.widgets.snippet import Call
from viz.charts.masks import weight_maps
from viz.charts.scaling import runs_chart, runs_table, score_histogram, variances_chart

MANY = (0.05, 0.2, 0.5, 0.8, 1.0, 1.25, 2.0, 5.0, 20.0)


def show_scaling(view: View, row: int) -> None:
    """The distribution of q·k, its variance compared with d_k, and a run without the division."""
    del row
    attention, head = view.attention, view.head
    mask = attention.mask[head]
    found = [product_statistics(attention, i) for i in range(attention.n_heads)]
    variances, independent = (np.array([getattr(f, n) for f in found]) for n in ("variance", "if_independent"))
    left, right = st.columns(2)
    with left:
        products = attention.scores[head][mask]
        figure = score_histogram(products, products / math.sqrt(attention.d_k))
        chart(figure, key="temperature-products", alt="Distribution of q·k before and after the division")
    with right:
        figure = variances_chart(variances, independent, attention.d_k, head)
        chart(figure, key="temperature-variances", alt="Variance of q·k per head")
    st.markdown(_statistics_text(attention, head))
    st.divider()
    calls = {
        "products": Call(tab.product_arrays, attention),
        "scores": Call(head_arrays, attention, head, ("scores", "scaled", "mask")),
    }
    if attention.scale == 1:
        st.info(_say_undivided(attention), icon=":material/info:")
    else:
        calls |= _without_division(view)
    export_tab(view, f"divided-{view.place.slug}", calls)


def _say_undivided(attention: Attention) -> str:
    if not attention.undivided:
        return "This model multiplies its queries by 1/√d_k before the product: its q·k are divided already."
    read = "q·k itself" if attention.reads_scaled else "q·k itself, with the bias or the soft cap of this model"
    return f"This model was trained without the division: its softmax reads {read}."


def _statistics_text(attention: Attention, head: int) -> str:
    found, d_k = product_statistics(attention, head), attention.d_k
    table = (
        "| head {head} | mean | variance |\n|---|---:|---:|\n| components of q | {q_mean:.3f} | {q_variance:.3f} "
        "|\n| components of k | {k_mean:.3f} | {k_variance:.3f} |\n| q·k, if the components were independent | | "
        "{if_independent:.3g} |\n| **q·k, measured** | | **{variance:.3g}** |\n| q·k / √d_k, measured | | "
        "{scaled_variance:.3g} |\n"
    ).format(head=head, **vars(found))
    return (
        "Footnote 4 of the paper: if the components of q and k were independent with mean 0 and variance 1, then "
        f"q·k, a sum of {d_k} products, would have mean 0 and variance d_k = **{d_k}**, and q·k / √d_k variance 1. In "
        f"a trained model they are not:\n\n{table}\nTraining aligns queries with the keys they should match, which "
        "makes the components dependent and moves the measured variance away from the independent one. Measured over "
        "all unmasked cells of this sentence."
    )


def _without_division(view: View) -> dict[str, Call]:
    """Run the model with it and without it; returns what the tab exports of both runs."""
    attention, head = view.attention, view.head
    tau = attention.scale
    divisor = "√d_k" if math.isclose(tau, attention.d_k**-0.5, rel_tol=1e-4) else f"{1 / tau:.4g}"
    st.markdown(
        (
            f"**Without the division.** softmax(q·k) is softmax((q·k / {divisor}) / τ) with τ = 1/{divisor} = "
            f"{tau:.4g}: omitting the division is a temperature, and the model can be run with it in every attention."
            if attention.reads_scaled
            else f"**Without the division.** Each q·k is then {1 / tau:.4g} times as large before this model's soft "
            "cap or bias, in every attention; that is no temperature, which would divide what comes after them."
        )
        + (" Neither run here uses the sidebar's τ." if view.tau != 1 else "")
    )
    undivided = (AttentionTemperature(tau) if attention.reads_scaled else Unscaled(),)
    plain = run_plain(view)
    other = run(view.translator, replace(view.request, interventions=undivided))
    show_texts({"With the division": plain.translation, "Without it, rerun": other.translation})
    before, after = (rerun(view.translator, plain, changes) for changes in ((), undivided))
    old, new = (trace.attention(view.kind, view.layer) for trace in (before, after))
    rows, keys = axis_labels(old)
    read = replace(old, scaled=old.scores).pre_softmax[head]
    drawn = softmax_at(read, old.mask[head], 1.0).astype(np.float32)
    maps = {"with: the run": old.pattern[head], "without: redrawn": drawn, "without: rerun": new.pattern[head]}
    figure = weight_maps(rows, keys, old.mask[head], maps)
    chart(figure, key="temperature-undivided", alt="Attention weights with and without the division", roomy=True)
    bits = [float(entropy(weights).mean()) for weights in maps.values()]
    st.caption(
        f"Mean entropy of this head's rows, in bits: {bits[0]:.3f} with the division, {bits[1]:.3f} without it, "
        f"redrawn, {bits[2]:.3f} without it, rerun; of all heads {mean_entropy(before):.3f} with, "
        f"{mean_entropy(after):.3f} without. Redrawn and rerun weights differ by at most "
        f"{np.abs(drawn - new.pattern[head]).max():.1e}: "
        + (
            "nothing upstream of this head changed. "
            if np.array_equal(old.scores, new.scores)
            else "its inputs changed as well. "
        )
        + "All three maps have the plain run's text as target. The model was trained with the division: this shows "
        "what it loses without it now, not what it would have learned without it."
    )
    show_probabilities(view, plain, undivided, ("divided by √d_k", "not divided"))
    return {
        "target": Call(tab.target_arrays, before, after),
        "before": Call(tab.head_in_run, before, view.kind, view.layer, head),
        "after": Call(tab.head_in_run, after, view.kind, view.layer, head),
    }


def show_many(view: View, row: int) -> None:
    """What the model writes at many temperatures, on request."""
    del row
    st.markdown(
        f"Runs the model at {len(MANY)} temperatures, applied in **{view.place.in_words(view.scope)}** (the sidebar's "
        "“Temperature acts on”), and lets it write each time. This takes a few seconds."
    )
    asked = (view.trace.checkpoint_hash, replace(view.request, interventions=()), view.place.address(view.scope))
    st.button(
        f"Run at {len(MANY)} temperatures",
        key="temperature-run-many",
        icon=":material/play_arrow:",
        on_click=_ask,
        args=(asked,),
    )
    if st.session_state.get("temperature-asked") != asked:
        return
    plain = run_plain(view)
    calls = _outcomes(view, plain)
    _show_outcomes([call.result for call in calls], plain)
    export_tab(view, "many-temperatures", {f"run_{number}": call for number, call in enumerate(calls)})


def _ask(asked: tuple) -> None:
    st.session_state["temperature-asked"] = asked


def _outcomes(view: View, plain: Trace) -> list[Call]:
    bar, calls = st.progress(0.0, "Running …"), []
    for done, tau in enumerate(MANY):
        bar.progress(done / len(MANY), f"Running with τ = {tau:g} …")
        changes = () if tau == 1 else (AttentionTemperature(tau, **view.place.address(view.scope)),)
        own = run(view.translator, replace(view.request, target=None, interventions=changes))
        scored = rerun(view.translator, plain, changes)
        calls.append(Call(tab.run_outcome, own, scored, (view.kind, view.layer, view.head)))
    bar.progress(1.0, f"{len(MANY)} runs done.")
    return calls


def _show_outcomes(outcomes: list[tab.Outcome], plain: Trace) -> None:
    totals, tokens, everywhere, here = (
        np.array([getattr(outcome, name) for outcome in outcomes])
        for name in ("total", "tokens", "all_heads", "this_head")
    )
    chart(
        runs_chart(MANY, totals / tokens, everywhere),
        key="temperature-runs",
        alt="Log-probability of the plain output at many temperatures",
    )
    translations = [outcome.translation for outcome in outcomes]
    table = runs_table(MANY, translations, totals, everywhere, here)
    st.dataframe(table, hide_index=True, key="temperature-runs-table")
    same = sum(text == plain.translation for text in translations)
    st.caption(
        f"{same} of {len(MANY)} runs write what the plain run does (τ = 1). Its log-probability in nats, a sum over "
        f"{tokens[0]} tokens including </s>, is measured with that text teacher-forced. Entropies in bits, of "
        "those runs.",
        help=define("nats", "teacher-forced", "entropy"),
    )
