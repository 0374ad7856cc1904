"""Training, tab "Attention through training": one head and one translation at earlier training steps."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis import tab_arrays as tab
from model.analysis.distributions import total_variation
from model.analysis.softmax import uniform_weights
from model.checkpoints.snapshots import open_snapshot, snapshot_steps
from model.checkpoints.store import CheckpointError, available_checkpoints, checkpoint_path, shown_name
from model.checkpoints.translator import Translator
from model.trace import Attention, Trace
from pages.compute.cache import shared_result
from pages.compute.runs import translate
from pages.compute.view import View
from pages.widgets.chart import chart
from pages.widgets.controls import steps, toggle
from pages.widgets.explain import explain
from pages.widgets.export import export_tab
from pages.widgets.glossary import define
from pages.widgets.snippet import Call
from viz import html
from viz.charts.heads_and_layers import head_map
from viz.heatmap import row_names
from viz.latex import scaled_scores
from viz.tokens import numbered

END = "end"
"""option of the slider: the shipped weights"""


@dataclass(frozen=True)
class Moment:
    """A snapshot's results on the sentence of the page."""

    hash: str
    """SHA-256 of its weights"""
    greedy: str
    """its own greedy translation"""
    loss: float
    """nats a token of the final translation, without smoothing"""


def show_snapshots(view: View, last_step: int | None) -> None:
    """Draw the chosen head at the chosen training step.

    Args:
        view: the run of the page.
        last_step: of log.csv; None if unknown.
    """
    saved = snapshot_steps(checkpoint_path(view.translator.name))
    if not saved:
        _say_who_has_snapshots(view)
        return
    chosen = _choose_step(saved, last_step)
    try:
        moment, attention = _moment_and_attention(view, chosen)
    except CheckpointError as error:
        with st.container(border=True):
            st.text(str(error))
        return
    st.html(html.sentence(moment.greedy))
    st.caption(
        f"Greedy translation {_name(chosen, last_step)}. Cross-entropy of the final translation, the one on this "
        f"page: {moment.loss:.3f} nats per token; a uniform distribution over all {view.trace.logits.shape[-1]:,} "
        f"tokens would have {np.log(view.trace.logits.shape[-1]):.3f}. Weights {moment.hash[:12]}.",
        help=define("nats", "teacher-forced"),
    )
    show_pattern(view, attention, _name(chosen, last_step))
    if toggle("List all steps", "all-steps"):
        _show_all(view, (*map(str, saved), END), last_step)
    explain(
        "Every picture is a run with the weights that training saved at that step, **teacher-forced**: the decoder "
        "reads the final translation, so rows and columns stay the same and only the weights differ. Before training, "
        "at step 0, cross-attention is nearly even: fresh queries and keys are almost unrelated, and the softmax of "
        "nearly equal scores is nearly uniform. Self-attention is further from even, above all in layer 0, whose "
        "input is not normalised yet. A snapshot holds the weights of one step; the checkpoint itself may ship the "
        "mean of several.",
        rf"\mathrm{{Attention}}(Q, K, V) = \mathrm{{softmax}}\!\left({scaled_scores(attention)}\right) V",
        "3.2.1",
    )
    step = None if chosen == END else int(chosen)
    run = view.translator, view.trace, step, view.kind, view.layer
    export_tab(view, f"attention-after-step-{chosen}", Call(tab.snapshot_pattern, *run))


def show_pattern(view: View, attention: Attention, when: str) -> None:
    """The sidebar's head in a snapshot, and its distance from the same head with the shipped weights."""
    keys = numbered(attention.key_tokens)
    rows = row_names(attention.query_tokens, attention.predicts.labels if attention.predicts else None)
    pattern, mask = attention.pattern[view.head], attention.mask[view.head]
    what = f"{view.place.title}, {when}"
    st.markdown(f"**{what}**")
    figure = head_map(rows, keys, pattern, mask, "attention weight")
    chart(figure, key="snapshot-pattern", alt=f"Attention weights: {what}")
    moved = total_variation(pattern, view.attention.pattern[view.head]).mean()
    spread = total_variation(pattern, uniform_weights(mask)).mean()
    st.caption(
        f"A row is a query, a column a key; masked cells are hatched. On average {moved:.1%} of a row's weight lies "
        f"elsewhere than with the shipped weights, and {spread:.1%} elsewhere than if it were spread evenly. Kind, "
        "layer and head are chosen in the sidebar."
    )


def _choose_step(saved: tuple[int, ...], last_step: int | None) -> str:
    # Without commas: the link writes the labels, and a comma there separates two values.
    options = {str(step): str(step) for step in saved} | {END: str(last_step or END)}
    return steps("After training step", options, "snapshot", default=END)


def _name(chosen: str, last_step: int | None) -> str:
    if chosen != END:
        return f"after {int(chosen):,} training steps"
    return f"at the end of training{f', step {last_step:,}' if last_step else ''} (the shipped weights)"


def _say_who_has_snapshots(view: View) -> None:
    """Say that this checkpoint has no snapshots, and which one has."""
    others = [name for name in available_checkpoints() if snapshot_steps(checkpoint_path(name))]
    remedy = f"Choose {' or '.join(others)} as checkpoint in the sidebar: it has them." if others else ""
    with st.container(border=True):
        st.text(
            f"{shown_name(view.translator.name)} ships no snapshots: the weights of earlier training steps were not "
            f"saved, so only its final attention can be shown. {remedy} python -m model.train writes them to "
            "snapshots/."
        )


def _show_all(view: View, chosen: tuple[str, ...], last_step: int | None) -> None:
    with st.spinner("Opening the snapshots …", show_time=True):
        moments = [_moment_and_attention(view, step)[0] for step in chosen]
    table = {
        "step": [f"{int(step):,}" if step != END else f"{last_step:,}" if last_step else END for step in chosen],
        "greedy translation": [moment.greedy for moment in moments],
        "nats a token, final translation": [moment.loss for moment in moments],
    }
    st.dataframe(
        pd.DataFrame(table),
        hide_index=True,
        height="content",
        column_config={
            "greedy translation": st.column_config.TextColumn(width="large"),
            "nats a token, final translation": st.column_config.NumberColumn(format="%.3f"),
        },
    )


def _moment_and_attention(view: View, chosen: str) -> tuple[Moment, Attention]:
    """Raises CheckpointError if the snapshot's file is damaged."""
    translator, trace = view.translator, view.trace
    if chosen != END:
        with st.spinner(f"Opening the weights of step {int(chosen):,} …"):
            translator = _snapshot(view.translator, int(chosen))
            trace = _rerun(translator, view.trace)
    (greedy,) = translate(translator, (view.trace.source,), 1, view.trace.interventions)
    loss = float(-trace.target_log_probabilities.mean())
    return Moment(translator.hash, greedy, loss), trace.attention(view.kind, view.layer)


@shared_result()
def _snapshot(translator: Translator, step: int) -> Translator:
    return open_snapshot(translator, step)


@shared_result()
def _rerun(translator: Translator, trace: Trace) -> Trace:
    return translator.rerun(trace, trace.interventions)
