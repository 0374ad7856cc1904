"""Temperature: the live picture, the runs before and after, and one row at several temperatures."""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import streamlit as st

from model.analysis import tab_arrays as tab
from model.analysis.softmax import one_hot_weights, softmax_at
from model.checkpoints.checkpoint import LOGITS
from model.interventions import Intervention
from model.trace import Trace
from pages.compute.runs import rerun, run
from pages.compute.view import View
from pages.frame.sidebar import TAUS
from pages.widgets.canvas import draw
from pages.widgets.chart import axis_labels, chart
from pages.widgets.controls import number, set_controls
from pages.widgets.export import export_tab
from pages.widgets.glossary import define
from pages.widgets.snippet import Call
from viz.charts.masks import probability_bars
from viz.charts.temperature import angle_bars, entropy_chart, live_weights, row_panels
from viz.drawing import Drawing
from viz.latex import signed
from viz.tokens import as_markdown, labels, numbered

CURVE = np.logspace(-2, 2, 81)
PANELS = (0.05, 0.5, 1.0, 2.0, 20.0)
ROW = "temperature-row"


def choose_row(view: View) -> int:
    """The query whose weights are drawn as bars; a click in the live picture also chooses it."""
    last = len(view.attention.query_tokens) - 1
    help_text = "You can also click on a row of the picture."
    return number(f"Row (query), 0 to {last}", (0, last), last // 2, ROW, width=240, help=help_text)


def draw_live(view: View, row: int) -> Drawing:
    """The head's weights, redrawn in the browser while τ is dragged; on release the model is rerun with it."""
    attention, head = view.attention, view.head
    predicts = view.attention.predicts
    following = [f"predicts {word}" for word in labels(predicts.labels)] if predicts else ()
    drawing = live_weights(
        (numbered(attention.query_tokens), numbered(attention.key_tokens)),
        following,
        {"mask": attention.mask[head], "scaled": attention.pre_softmax[head], "pattern": attention.pattern[head]},
        title=view.place.title,
        temperature=view.tau,
        taus=TAUS,
        row=row,
        scope={"head": "this head", "layer": "all heads of this layer", "everywhere": "every attention"}[view.scope],
    )
    return draw(drawing, "temperature", on_tau_change=_take_tau, on_row_change=_take_row)


def _take_tau() -> None:
    """Set the sidebar's temperature, and so the run, to where the picture's slider was released."""
    asked = st.session_state["temperature"].get("tau")
    if asked:
        set_controls({"tau": min(TAUS, key=lambda tau: abs(math.log(tau / float(asked))))})


def _take_row() -> None:
    row = st.session_state["temperature"].get("row")
    if row is not None:
        set_controls({ROW: int(row)})


def run_plain(view: View) -> Trace:
    """The run as trained, without the temperature."""
    return run(view.translator, replace(view.request, interventions=()))


def show_run_again(view: View, row: int) -> None:
    """Output and probabilities before and after applying the sidebar's temperature inside the model."""
    del row
    if view.tau == 1:
        st.info(
            "Release the slider at a τ other than 1: the model is rerun with it, and this tab compares before and "
            "after."
        )
        return
    plain = run_plain(view)
    st.markdown(f"**Rerun** with τ = {view.tau:g}; before: τ = 1, as trained.")
    if LOGITS not in view.translator.features:
        show_vectors(view, plain)
        return
    show_texts({"Before, τ = 1": plain.translation, f"After, τ = {view.tau:g}": view.trace.translation})
    show_probabilities(view, plain, view.trace.interventions, ("τ = 1", f"τ = {view.tau:g}"))
    before, after = (rerun(view.translator, plain, changes) for changes in ((), view.trace.interventions))
    st.markdown(_agreement(view, before, after))
    export_tab(view, f"before-and-after-tau-{view.tau:g}", Call(tab.target_arrays, before, after))


def show_vectors(view: View, plain: Trace) -> None:
    """What a model without probabilities hands on: the vector of each token, before and after."""
    call = Call(tab.vector_arrays, plain, view.trace)
    degrees = call.result["degrees"]
    tokens = numbered(list(plain.streams.values())[-1].tokens.labels)
    bars = angle_bars(tokens, degrees)
    chart(bars, key="temperature-vectors", alt="Angle between each token's vectors before and after, in degrees")
    st.caption(
        "This model gives a vector for each token, and no probabilities. Drawn: the angle by which the temperature "
        f"turns this vector, as it leaves the last layer. Mean {degrees.mean():.2f}°; largest {degrees.max():.2f}°, at "
        f"{as_markdown(tokens[int(degrees.argmax())])}."
    )
    st.markdown(_agreement(view, plain, view.trace))
    export_tab(view, f"before-and-after-tau-{view.tau:g}", call)


def show_texts(texts: Mapping[str, str]) -> None:
    """Texts that runs wrote, side by side, as plain text because they may quote user input."""
    for column, (title, text) in zip(st.columns(len(texts)), texts.items(), strict=True):
        with column.container(border=True):
            st.caption(title)
            st.text(text or "(an empty text)")
    if len(set(texts.values())) == 1:
        st.caption("The texts are identical; their probabilities need not be.")


def show_probabilities(
    view: View, plain: Trace, interventions: tuple[Intervention, ...], said: tuple[str, str]
) -> None:
    """The probability of each token of the plain run's text, before and after a change."""
    runs = [rerun(view.translator, plain, changes) for changes in ((), interventions)]
    right = [trace.target_probabilities for trace in runs]
    chart(
        probability_bars(runs[0].next_tokens, *right, said),
        key="temperature-probabilities",
        alt="Probability of each token before and after",
    )
    total = [signed(trace.log_probability, ".3f") for trace in runs]
    st.caption(
        "The probability that each run gives to every token of the plain run's text, teacher-forced in both. "
        f"Log-probability of the whole, in nats: {total[0]} before, {total[1]} after.",
        help=define("teacher-forced", "nats"),
    )


def _agreement(view: View, before: Trace, after: Trace) -> str:
    """How far the redrawn weights of the chosen head are from those of the rerun."""
    plain, hot = (trace.attention(view.kind, view.layer) for trace in (before, after))
    drawn = softmax_at(plain.pre_softmax[view.head], plain.mask[view.head], float(hot.temperature[view.head]))
    apart = float(np.abs(drawn - hot.pattern[view.head]).max())
    inputs = float(np.abs(plain.pre_softmax[view.head] - hot.pre_softmax[view.head]).max())
    text = (
        f"**Redrawn and rerun**, head {view.head} of layer {view.layer}: the weights redrawn from the scores of the "
        f"plain run differ from those of the run with τ = {view.tau:g} by at most **{apart:.1e}**. "
    )
    if inputs == 0:
        return text + "Nothing upstream of this head changed: its scores are identical, and the rest is rounding."
    return text + (
        "Redrawing keeps the scores fixed. In the rerun the temperature also acts upstream of this head, so its "
        f"queries and keys changed, and its scores by up to {inputs:.3g}."
    )


def show_row(view: View, row: int) -> None:
    """One query's weights at several temperatures and in both limits, and its entropy as a function of τ."""
    attention, head = view.attention, view.head
    rows, keys = axis_labels(attention)
    scaled, mask = attention.pre_softmax[head], attention.mask[head]
    calls = {
        "row": Call(tab.row_at_temperatures, attention, head, row, PANELS),
        "entropy": Call(tab.entropy_curves, attention, head, CURVE.tolist()),
    }
    titles = ("τ → 0", *(f"τ = {tau:g}" for tau in PANELS), "τ → ∞")
    panels = dict(zip(titles, zip(*calls["row"].result.values(), strict=True), strict=True))
    st.text(f"Row {rows[row]}")
    chart(
        row_panels(keys, mask[row], panels),
        key="temperature-row-panels",
        alt="One row's weights at five temperatures and in both limits",
    )
    ties = int((one_hot_weights(scaled[row], mask[row]) > 0).sum())
    shared = f", here shared by {ties} equal ones" if ties > 1 else ""
    st.caption(
        "**Recomputed** from the scores of this run, softmax(scaled / τ); grey keys are masked. τ → 0 puts all "
        f"weight on the highest score{shared}: attention becomes a lookup. τ → ∞ gives every unmasked key the same "
        "weight: attention becomes the mean of the values."
    )
    curves = calls["entropy"].result
    figure = entropy_chart(
        CURVE, curves[:, row], curves.mean(axis=1), int(mask[row].sum()), float(attention.temperature[head])
    )
    chart(figure, key="temperature-entropy", alt="Entropy against temperature")
    st.caption("Entropy never falls as τ rises. At H bits the weights are as spread out as over 2^H equal keys.")
    export_tab(view, f"row-{row}-{view.place.slug}", calls)
