"""Why attention: one function per tab."""

import math

import numpy as np
import streamlit as st

from model.analysis.softmax import softmax_peaks
from model.analysis.view_arrays import head_arrays
from model.background import lstm, scoring_functions
from model.background.sizes import self_attention_layer
from model.background.stopwatch import Timings, exponents, growth, time_on
from model.background.table_1 import contiguous_layers, lstm_work, paths, windows
from model.network.config import TransformerConfig
from model.trace import Attention
from pages.compute.on_request import measure_on_request
from pages.compute.view import View
from pages.widgets.chart import chart
from pages.widgets.controls import choice, clamp, select, table
from pages.widgets.explain import explain
from pages.widgets.export import export_tab
from pages.widgets.page_links import link_with
from pages.widgets.snippet import Call
from viz.charts.scoring_functions import cost_table, score_maps
from viz.charts.timing import time_chart, time_table
from viz.charts.why_attention import path_chart
from viz.heatmap import row_names
from viz.steps.head import head_of
from viz.theme import OKABE_ITO
from viz.tokens import numbered

BATCHES = (1, 4, 16)
LAYER = 0
"""of the first stack, whose self-attention is timed; all its layers have the same size"""
LAYERS = {lstm.ATTENTION: (OKABE_ITO[5], "circle"), lstm.LSTM: (OKABE_ITO[0], "square")}
SCORINGS = {
    scoring_functions.DOT: (OKABE_ITO[0], "circle"),
    scoring_functions.SCALED: (OKABE_ITO[5], "x"),
    scoring_functions.MULTIPLICATIVE: (OKABE_ITO[2], "square"),
    scoring_functions.ADDITIVE: (OKABE_ITO[3], "diamond"),
}
FORMULAS = {
    scoring_functions.DOT: "q · k",
    scoring_functions.SCALED: "q · k / √d_k",
    scoring_functions.MULTIPLICATIVE: "qᵀ W k",
    scoring_functions.ADDITIVE: "vᵀ tanh(W₁ q + W₂ k)",
}


@st.fragment
def show_paths(view: View, k: int, r: int) -> None:
    """The path from one token of the sentence to another in each kind of layer."""
    tokens = next(iter(view.trace.streams.values())).tokens.labels
    last = len(tokens) - 1
    first, second = sorted(_two_words(numbered(tokens)))
    ways = paths(first, second, k, r)
    figure = path_chart(tokens, ways, windows(ways, len(tokens), k, r))
    chart(figure, key="why-paths", alt="The path between two tokens in four kinds of layer.")
    apart = second - first
    st.markdown(
        f"The two tokens are **{apart}** position{'' if apart == 1 else 's'} "
        f"apart{', the maximum here' if apart == last else ''}. Signals between them, forward and in the gradient, "
        "traverse every step on the bold line: the shorter the path, the easier it is to learn such a dependency "
        "(section 4)."
    )
    st.caption(
        "Thin lines, where there are few enough of them: everything that the token on the right can read. The "
        f"recurrent layer passes its state from left to right. Convolutions have causal kernels of width k = {k} with "
        f"dilation 1, {k}, {k**2}, …, as in the paper's logₖ(n); without dilation it would take "
        f"{contiguous_layers(first, second, k)} layers, the paper's n / k. Restricted attention reads r = {r} "
        f"neighbours centred on the token, so {r // 2} positions back per layer. The table above counts a whole "
        "sentence of length n and, like the paper, omits constants and rounding."
    )
    export_tab(view, "path-length", {"path": Call(paths, first, second, k, r, result=ways)})


def _two_words(names: list[str]) -> tuple[int, int]:
    last, options = len(names) - 1, dict(enumerate(names))
    left, right, button = st.columns([3, 3, 2], vertical_alignment="bottom")
    for key in ("path_from", "path_to"):
        clamp(key, (0, last))
    first = select("From", options, "path_from", default=0, place=left)
    second = select("To", options, "path_to", default=last, place=right)
    button.button(
        "The two most distant tokens", key="path_farthest", on_click=_take_farthest, args=(last,), width="stretch"
    )
    return first, second


def _take_farthest(last: int) -> None:
    st.session_state["path_from"], st.session_state["path_to"] = 0, last


@st.fragment
def show_measured(view: View) -> None:
    """Time of one self-attention layer and of one LSTM layer of the same width, by sentence length."""
    model, device = view.translator.model, view.trace.device
    d, stack = model.config.d_model, next(iter(view.trace.streams))
    sizes = lstm.layer_parameters(model, LAYER)
    st.markdown(
        f"One layer each, of width d = {d}, one forward pass without gradients: the **self-attention** of this "
        f"checkpoint's {stack}, layer {LAYER}, with its own weights ({sizes[lstm.ATTENTION]:,} parameters), and a "
        f"**torch.nn.LSTM** ({sizes[lstm.LSTM]:,} parameters). The LSTM's weights and the inputs are random normal "
        "numbers with a fixed seed; the time does not depend on their values."
    )
    batch = choice("Batch size", BATCHES, "time_batch")
    timings = measure_on_request(
        "why-time-layers",
        (d, model.config.n_heads, batch),
        device,
        lambda: lstm.layer_contenders(model, LAYER, batch),
    )
    if timings:
        n = len(next(iter(view.trace.streams.values())).tokens)
        _show_layers(timings, view.translator.config, batch, n)
        layers = Call(lstm.layer_contenders, model, LAYER, batch)
        export_tab(view, "measured-layers", Call(time_on, layers, device, result=timings))


def _show_layers(timings: Timings, config: TransformerConfig, batch: int, n: int) -> None:
    lengths, d = timings.lengths, config.d_model
    ours, theirs = (timings.seconds[name] for name in LAYERS)
    chart(
        time_chart(lengths, timings.samples, LAYERS, n),
        key="why-times",
        alt="Time of self-attention and of an LSTM by sentence length.",
    )
    powers = [growth(lengths, seconds) for seconds in (ours, theirs)]
    st.markdown(
        f"At n = {lengths[-1]} the LSTM takes **{theirs[-1] / ours[-1]:.3g} times** as long as self-attention; at n = "
        f"{lengths[0]}, {theirs[0] / ours[0]:.3g} times. From n = {lengths[-3]} to {lengths[-1]} the time grows as n "
        f"to the power **{powers[0]:.2f}** for self-attention and **{powers[1]:.2f}** for the LSTM."
    )
    counted = (
        "2 n² d + 4 n d² for self-attention with its projections, 8 n d² for the four gates of the LSTM; equal at n = "
        f"2 d = {2 * d}"
        if config.kv_heads * config.d_k == config.kv_heads * config.d_v == d
        else "n² h (d_k + d_v) + n d (h + h_kv) (d_k + d_v) for self-attention with its projections, with h = "
        f"{config.n_heads}, h_kv = {config.kv_heads}, d_k = {config.d_k}, d_v = {config.d_v}; 8 n d² for the four "
        "gates of the LSTM"
    )
    columns = {
        "attention: ms": ours * 1e3,
        "LSTM: ms": theirs * 1e3,
        "ratio": theirs / ours,
        "attention: steps": [1] * len(lengths),
        "LSTM: steps": list(lengths),
        "attention: power": exponents(lengths, ours),
        "LSTM: power": exponents(lengths, theirs),
        "attention: M ops": [batch * self_attention_layer(config, length).total / 1e6 for length in lengths],
        "LSTM: M ops": [batch * lstm_work(length, d) / 1e6 for length in lengths],
    }
    table(time_table(lengths, columns))
    st.caption(
        f"{how_measured(timings)} Ratio: LSTM / self-attention. Steps: sequential operations. Power: p in time ~ nᵖ, "
        f"between the previous row and this one. M ops: million multiply-adds, {counted}. Measured times "
        "deviate from the counts because of sequential steps and of how well each kernel uses the hardware."
    )


@st.fragment
def show_scoring(view: View) -> None:
    """The chosen head's scores under several scoring functions, and their cost."""
    attention, head = view.attention, view.head
    found = scoring_functions.multiplicative(attention, head)
    scores, scaled = attention.scores[head], attention.scaled[head]
    following = attention.predicts.labels if attention.predicts else None
    rows, keys = row_names(attention.query_tokens, following), numbered(attention.key_tokens)
    maps = {"1  q · k": scores, "2  scaled": scaled, "3  x W xᵀ": found.scores}
    chart(
        score_maps(rows, keys, maps),
        key="why-scores",
        alt="Scores of one head under three scoring functions.",
        roomy=True,
    )
    scaling = (
        f"divided by {1 / attention.scale:.4g}" if attention.scale != 1 else "the same: this model does not divide"
    )
    if math.isclose(attention.scale, attention.d_k**-0.5, rel_tol=1e-4):
        scaling = f"divided by √{attention.d_k}"
    st.caption(
        f"Head {head} of layer {view.layer}, before the mask. 1: dot product. 2: {scaling}. 3: "
        "multiplicative form with $W = W_Q W_K^\\top$, without biases. All three share one colour range. Rows are "
        "queries, columns keys. The additive form needs weights that this model does not have. "
        "An LSTM that was trained with such weights is shipped with the app."
    )
    link_with("The weights of trained additive attention", "why_attention", why="Recurrence and attention")
    st.markdown(_identity(attention, head, found))
    explain(
        "Dot product and multiplicative scores are matrix multiplications, which hardware executes fastest; the "
        "additive form has to compute $d_k$ tanh values for every pair before summing them. Dot products grow with "
        "$d_k$: if the components are independent with mean 0 and variance 1, $q \\cdot k$ has mean 0 and variance "
        "$d_k$ (footnote 4), which pushes the softmax into regions with tiny gradients. So the paper divides by "
        "$\\sqrt{d_k}$.",
        r"\underbrace{q \cdot k}_{\text{dot product}} \qquad \underbrace{\tfrac{q \cdot k}{\sqrt{d_k}}}_{\text{scaled}}"
        r"\qquad \underbrace{q^{\top} W k}_{\text{Luong et al. 2015}} \qquad "
        r"\underbrace{v^{\top} \tanh(W_1 q + W_2 k)}_{\text{Bahdanau et al. 2015}}",
        "3.2.1",
    )
    timings = _show_scoring_costs(view, attention, head)
    calls = {
        "head": Call(head_arrays, attention, head, ("scores", "scaled", "mask")),
        "multiplicative": Call(scoring_functions.multiplicative, attention, head, result=found),
        "cost": Call(scoring_functions.scoring_costs, *attention.scores[head].shape, attention.d_k),
    }
    if timings:
        contenders = Call(scoring_functions.head_contenders, attention, head, view.trace.device)
        calls["time"] = Call(time_on, contenders, view.trace.device, result=timings)
    export_tab(view, f"scoring-functions-{view.place.slug}", calls)


def _identity(attention: Attention, head: int, found: scoring_functions.Multiplicative) -> str:
    scores, mask = attention.scores[head], attention.mask[head]
    then = head_of(attention, head).then
    error = np.abs(found.total - scores).max()
    peaks = [softmax_peaks(values, mask).mean() for values in (scores, attention.scaled[head], found.scores)]
    width = (
        f"With $W = W_Q W_K^\\top$, {found.w.shape[0]} × {found.w.shape[1]} and of rank {attention.d_k} at most, "
        f"$x W x^\\top$ of the head's inputs{' plus its bias terms' if attention.projections.biases else ''} equals "
    )
    same = (
        f"- **Multiplicative and dot-product scores are equivalent here.** {width}$q \\cdot k$: largest difference "
        f"**{error:.1e}**, with scores up to {np.abs(scores).max():.3g}.\n"
        if not then
        else "- **Multiplicative and dot-product scores are equivalent only before this model changes queries and keys "
        f"({then}).** {width}$q \\cdot k$ before that: largest difference "
        f"**{_error_before(attention, head, found):.1e}**. From the $q \\cdot k$ of the run it differs by up to "
        f"{error:.3g}, with scores up to {np.abs(scores).max():.3g}.\n"
    )
    biases = (
        f"- The biases alone: $b_Q$ with the key adds up to {np.abs(found.from_key).max():.3g}; the query with $b_K$ "
        f"{np.abs(found.from_query).max():.3g}, constant along a row, so the softmax ignores it; $b_Q$ with $b_K$ "
        f"{found.constant:.3g}.\n"
        if attention.projections.biases
        else ""
    )
    return (
        f"{same}{biases}- **Why scaled.** Mean of each row's largest weight at τ = 1: {peaks[0]:.3f} with the unscaled "
        f"dot product, **{peaks[1]:.3f}** scaled as in the model, {peaks[2]:.3f} with form 3, unscaled."
    )


def _error_before(attention: Attention, head: int, found: scoring_functions.Multiplicative) -> float:
    """The largest difference from q k^T before norm and rotation."""
    linear = head_of(attention, head).linear
    return float(np.abs(found.total - linear["Q"].astype(np.float64) @ linear["K"].T).max())


def _show_scoring_costs(view: View, attention: Attention, head: int) -> Timings | None:
    n, m, d_k = len(attention.query_tokens), len(attention.key_tokens), attention.d_k
    costs = scoring_functions.scoring_costs(n, m, d_k)
    rows = {name: (cost.multiply_adds, cost.tanhs, cost.numbers) for name, cost in costs.items()}
    st.markdown(f"**Cost** for this head's {n} queries, {m} keys and $d_k$ = {d_k}")
    table(cost_table(rows, FORMULAS))
    st.caption(
        "W, W₁ and W₂ are $d_k$ × $d_k$, and are applied once to each query or key. For the timings below they and v "
        "are untrained random numbers with a fixed seed, of the right shape. q and k are this head's own, repeated "
        "to length n."
    )
    timings = measure_on_request(
        "why-time-scoring",
        (d_k,),
        view.trace.device,
        lambda: scoring_functions.head_contenders(attention, head, view.trace.device),
    )
    if not timings:
        return None
    chart(
        time_chart(timings.lengths, timings.samples, SCORINGS, n),
        key="why-scoring-times",
        alt="Time of four scoring functions by sentence length.",
    )
    slower = timings.seconds[scoring_functions.ADDITIVE][-1] / timings.seconds[scoring_functions.DOT][-1]
    st.markdown(
        f"At n = {timings.lengths[-1]} the additive scores take **{slower:.3g} times** as long as the dot product."
    )
    milliseconds = {f"{name}, ms": seconds * 1e3 for name, seconds in timings.seconds.items()}
    table(time_table(timings.lengths, milliseconds))
    st.caption(how_measured(timings))
    return timings


def how_measured(timings: Timings) -> str:
    """Conditions of a measurement, in one sentence."""
    return (
        f"Measured once on {timings.conditions}: {timings.rounds} interleaved rounds, each call after an untimed "
        "warm-up call; medians, with the interquartile range as bars. Other load on the machine is included."
    )
