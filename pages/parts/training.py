"""Training: the curves of the log, and the tabs "Learning rate" and "Label smoothing"."""

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis import tab_arrays as tab
from model.checkpoints.card import Card
from model.trace import Array
from model.training.loss import cross_entropies, smoothed_shares, target_entropy
from model.training.schedule import FittedSchedule, fit_schedule, noam, schedule_curve
from pages.compute.view import View
from pages.parts.translate import choose_position
from pages.widgets.chart import chart
from pages.widgets.controls import choice, slider
from pages.widgets.explain import explain
from pages.widgets.export import export_tab
from pages.widgets.glossary import define
from pages.widgets.page_links import link_with
from pages.widgets.snippet import Call
from viz.charts.training import OVER, panels_of, run_curves, schedule_chart, smoothing_chart
from viz.charts.translate import rank_candidates
from viz.tokens import decoder_rows

PAPER_WARMUP, PAPER_SMOOTHING = 4000, 0.1
DRAWN = 600
"""points of the schedule's curve"""


def say_where_parts_went() -> None:
    """A sentence and a link, where a link of an earlier version asks for a tab that is now on another page."""
    if st.query_params.get("training") == "Parts since 2017":
        tab = "What each part buys"
        st.info(f"“Parts since 2017” is now the tab “{tab}” of the page Since 2017.", icon=":material/info:")
        link_with(f"Open “{tab}”", "since_2017", since=tab)


def log_table(card: Card) -> pd.DataFrame:
    """log.csv as a table, NaN for empty cells; no rows without a log."""
    return pd.DataFrame([dict(row) for row in card.log])


def show_curves(card: Card, log: pd.DataFrame, d_model: int) -> object | None:
    """Draw the logged curves and say what the log lacks; returns the figure, None without a log."""
    filled = [column for column in log if log[column].notna().any()]
    drawn = [column for panel in panels_of(filled) for column in panel.columns]
    missing = [column for column in drawn if column not in filled]
    over = [column for column in OVER if column in filled]
    if not over or len(missing) == len(drawn):
        st.info(card.missing.get("log.csv", "This checkpoint's log.csv holds no curve."), icon=":material/info:")
        return None
    chosen = over[0]
    if len(over) > 1:
        chosen = choice("Over", {name: OVER[name] for name in over}, "over")
    columns = {column: log[column].to_numpy(float) for column in (chosen, *drawn) if column not in missing}
    figure = run_curves(columns, chosen)
    chart(figure, key="curves", alt="Loss, score and tokens per second during training.", roomy=True)
    st.caption(
        "**The two losses are different measures**: the training loss has the dropout and the label smoothing of the "
        "run, averaged since the previous row; the development loss uses one-hot targets without dropout, with the "
        "weights averaged over the last evaluations. So they cannot be compared directly. Speed counts the target "
        "tokens per second since the start of that run. "
        + _describe_runs(_logged_rates(log), d_model)
        + (f"log.csv lacks: {', '.join(missing)}. " if missing else "")
        + "The checkpoint's data files record neither label smoothing nor batch size; its README.md may."
    )
    return figure


def show_schedule(view: View, log: pd.DataFrame) -> None:
    """Equation 3 for a chosen warm-up and this model's width, with the logged learning rates."""
    d_model = view.translator.config.d_model
    points = _logged_rates(log)
    fitted = fit_schedule(*points, d_model) if points else None
    warmup = slider("Warm-up steps", (100, 20_000), PAPER_WARMUP, "warmup", step=100)
    end = max(3 * warmup, 1.1 * points[0].max() if points else 0)
    curve = Call(schedule_curve, d_model, warmup, int(end), DRAWN)
    steps = curve.result["step"]
    curves = {f"equation 3, warm-up {warmup:,}": curve.result["rate"]}
    if fitted:
        own = max(round(fitted.warmup), 1)
        rates = [noam(s, d_model, own, fitted.factor) for s in steps.tolist()]
        curves[f"equation 3 as read back, warm-up {own:,}"] = np.array(rates)
    peak = (warmup, noam(warmup, d_model, warmup))
    chart(schedule_chart(steps, curves, points, peak), key="schedule", alt="Learning rate over training steps.")
    st.caption(_describe_rates(points, fitted))
    explain(
        f"With d_model = {d_model}. The rate rises linearly during warm-up, then decays with the inverse square root "
        "of the step: Adam's moment estimates need time before large steps are safe, and wider models use smaller "
        f"rates. The peak is (d_model · warmup)^−½ = {peak[1]:.4g}. The paper's warm-up is {PAPER_WARMUP:,} steps.",
        r"lrate = d_{model}^{-0.5} \cdot \min\!\left(step^{-0.5},\; step \cdot warmup^{-1.5}\right)",
        "5.3, equation 3",
    )
    export_tab(view, "learning-rate", curve)


def show_smoothing(view: View) -> None:
    """The smoothed target at one position, the model's probabilities there, and both cross-entropies."""
    trace, vocabulary = view.trace, view.trace.logits.shape[-1]
    left, right = st.columns(2)
    with left:
        position = choose_position(decoder_rows(trace.row_tokens, trace.next_tokens))
    epsilon = slider("Label smoothing ε", (0.0, 0.5), PAPER_SMOOTHING, "epsilon", step=0.01, place=right)
    share, other = smoothed_shares(vocabulary, epsilon)
    probabilities = trace.probabilities[position]
    written = (trace.next_tokens[position], trace.next_ids[position], float(probabilities[trace.next_ids[position]]))
    names, model, chosen = rank_candidates(trace.candidates[position], written)
    target = np.full(len(names), other)
    target[chosen] = share
    plain = cross_entropies(trace.logits, trace.next_ids, 0.0)
    smoothed = cross_entropies(trace.logits, trace.next_ids, epsilon)
    places = st.columns(5)
    places[0].metric("Target, correct token", f"{share:.4%}", help=f"1 − ε + ε/V = {share!r}")
    places[1].metric("Target, each other token", f"{other:.3g}", help=f"ε/V = {other!r}, V = {vocabulary:,}")
    places[2].metric("Model, correct token", f"{written[2]:.4%}", help=f"{written[2]!r}")
    places[3].metric("Nats, one-hot", f"{plain[position]:.4f}", help=f"Cross-entropy {plain[position]!r} nats")
    places[4].metric("Nats, smoothed", f"{smoothed[position]:.4f}", help=f"Cross-entropy {smoothed[position]!r} nats")
    figure = smoothing_chart(names, target, model, chosen, vocabulary)
    chart(figure, key="smoothing", alt=f"Smoothed target and model's probabilities at position {position}")
    st.caption(
        "Bold: the token in the run's text, taken as the correct one. A logarithmic axis cannot show a probability "
        f"of 0. Over all {len(plain)} positions: {plain.mean():.4f} nats per token against the one-hot target, "
        f"{smoothed.mean():.4f} against the smoothed one, of which {target_entropy(vocabulary, epsilon):.4f} are the "
        "target's own entropy, the lower bound for any model. Computed from this run's logits in double precision.",
        help=define("nats"),
    )
    explain(
        f"The correct token gets 1 − ε + ε/V, each other of the V = {vocabulary:,} tokens ε/V. Growing ever more "
        "certain no longer pays off, because a probability of 0 for the other tokens would have infinite cost. The "
        "paper, with ε = 0.1: it “hurts perplexity, as the model learns to be more unsure, but improves accuracy and "
        "BLEU score”.",
        r"q(v) = (1-\varepsilon)\,[v = y] + \frac{\varepsilon}{V} \qquad "
        r"H(q, p) = -(1-\varepsilon)\log p(y) - \frac{\varepsilon}{V}\sum_v \log p(v)",
        "5.4",
    )
    export_tab(view, "label-smoothing", Call(tab.smoothing_arrays, trace, position, epsilon))


def _logged_rates(log: pd.DataFrame) -> tuple[Array, Array] | None:
    """Steps and learning rates of a log; None if it has none."""
    if not {"step", "learning_rate"} <= set(log):
        return None
    rows = log[["step", "learning_rate"]].dropna()
    return (rows["step"].to_numpy(float), rows["learning_rate"].to_numpy(float)) if len(rows) else None


def _describe_runs(points: tuple[Array, Array] | None, d_model: int) -> str:
    """What a log of several runs shares between them and what it does not; empty for a single run."""
    fitted = fit_schedule(*points, d_model) if points else None
    if not (fitted and fitted.restarted_at):
        return ""
    if not fitted.raised_at:
        return (
            f"This log holds two runs, the second from step {fitted.restarted_at:,} on: the hours run on through both, "
            "the speed starts over, so hours times speed is not the number of tokens. "
        )
    *steps, last = (f"{step:,}" for step in (fitted.restarted_at, *fitted.raised_at))
    return (
        f"This log holds several runs: by step {', '.join(steps)} and {last} the learning rate has risen again, where "
        "a further run began or one was continued. The hours run on through all of them, the speed starts over with "
        "each run, so hours times speed is not the number of tokens. "
    )


def _describe_rates(points: tuple[Array, Array] | None, fitted: FittedSchedule | None) -> str:
    if points is None:
        return "This checkpoint's folder does not say which learning rates its training used."
    if fitted is None:
        return "Dots: the logged rates. They do not show both the rise and the decay of equation 3, so none is fitted."
    text = (
        f"Dots: the {len(points[0])} rates in log.csv. The first {fitted.n_followed} are equation 3 with a warm-up of "
        f"{fitted.warmup:,.0f} steps and a factor of {fitted.factor:.4g}, both fitted to these dots; the largest "
        f"difference is {fitted.error:.1e} of the rate, because the log keeps six digits. "
    )
    if fitted.lowered_from:
        text += f"From step {fitted.lowered_from:,} the rate is below the equation: a cooldown. "
    if fitted.restarted_at:
        text += (
            f"Step {fitted.restarted_at:,} is the first logged step of a second run, which continues with these "
            "weights and warms up again. "
        )
    if fitted.raised_at:
        jumps = " and ".join(f"{step:,}" for step in fitted.raised_at)
        text += f"The rate jumps up again at step {jumps}. "
    return text
