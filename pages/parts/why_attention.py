"""What the page on why attention shows below its curves, a view a tab."""

import numpy as np
import pandas as pd
import streamlit as st

from model.background import lstm, scoring_functions
from model.background.stopwatch import Timings, exponents, growth
from model.background.table_1 import attention_work, contiguous_layers, lstm_work, paths, windows
from model.trace import Attention
from pages.compute.on_request import measure_on_request
from pages.frame.view import View
from pages.widgets.chart import chart
from pages.widgets.controls import choice, select
from pages.widgets.explain import explain
from viz.charts.scoring_functions import cost_table, score_maps
from viz.charts.timing import time_chart, time_table
from viz.charts.why_attention import path_chart
from viz.heatmap import row_names
from viz.theme import OKABE_ITO
from viz.tokens import numbered

BATCHES = (1, 4, 16)
LAYER = 0
"""of the encoder, whose self-attention is timed: all its layers are equally large"""
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
    """The way from one of the person's own words to another, in each kind of layer."""
    tokens = view.trace.src_tokens
    last = len(tokens) - 1
    first, second = sorted(_two_words(numbered(tokens)))
    ways = paths(first, second, k, r)
    figure = path_chart(tokens, ways, windows(ways, len(tokens), k, r))
    chart(figure, key="why-paths", alt="The way between two tokens in four kinds of layer.")
    apart = second - first
    st.markdown(
        f"The two words lie **{apart}** position{'' if apart == 1 else 's'} apart"
        f"{', the farthest here' if apart == last else ''}. What one of them has to learn of the other, forward and in "
        "the gradient's way back, goes through every step on the bold line: the shorter it is, the easier such a "
        "dependency is to learn (section 4)."
    )
    st.caption(
        "Thin lines, where they are few enough to tell apart: all that the word on the right can read. "
        "The recurrent layer hands its state on from left to "
        f"right. Convolutions have kernels of k = {k} that look back, dilated 1, {k}, {k**2}, … as in the paper's "
        f"logₖ(n); without dilation it would take {contiguous_layers(first, second, k)}, the paper's n / k. "
        f"Restricted attention looks at r = {r} neighbours with itself in the middle, so {r // 2} back a layer. The "
        "table above counts a whole sentence of n and leaves rounding and constants away, as the paper does."
    )


def _two_words(names: list[str]) -> tuple[int, int]:
    last, options = len(names) - 1, dict(enumerate(names))
    left, right, button = st.columns([3, 3, 2], vertical_alignment="bottom")
    first = select("From", options, "path_from", default=0, place=left)
    second = select("To", options, "path_to", default=last, place=right)
    button.button("The farthest two", key="path_farthest", on_click=_take_farthest, args=(last,), width="stretch")
    return first, second


def _take_farthest(last: int) -> None:
    st.session_state["path_from"], st.session_state["path_to"] = 0, last


@st.fragment
def show_measured(view: View) -> None:
    """One self-attention layer and one LSTM layer of its width, timed as the sentence grows."""
    model, device = view.translator.model, view.trace.device
    d = model.config.d_model
    sizes = lstm.layer_parameters(model, LAYER)
    st.markdown(
        f"One layer each, d = {d} wide inside and out, one forward pass without gradients: the **self-attention** of "
        f"this checkpoint's encoder, layer {LAYER}, with its own weights ({sizes[lstm.ATTENTION]:,} "
        f"parameters), and a **torch.nn.LSTM** ({sizes[lstm.LSTM]:,} parameters). The LSTM's weights and the "
        "inputs are seeded normal numbers: the time does not depend on them."
    )
    batch = choice("Sentences at once", BATCHES, "time_batch")
    timings = measure_on_request(
        "why-time-layers",
        (d, model.config.n_heads, batch),
        device,
        lambda: lstm.layer_contenders(model, LAYER, batch),
    )
    if timings:
        _show_layers(timings, d, batch, len(view.trace.src_tokens))


def _show_layers(timings: Timings, d: int, batch: int, n: int) -> None:
    lengths = timings.lengths
    ours, theirs = (timings.seconds[name] for name in LAYERS)
    chart(
        time_chart(lengths, timings.samples, LAYERS, n),
        key="why-times",
        alt="Time of self-attention and of an LSTM over the length.",
    )
    powers = [growth(lengths, seconds) for seconds in (ours, theirs)]
    st.markdown(
        f"At n = {lengths[-1]} the LSTM takes **{theirs[-1] / ours[-1]:.3g} times** as long as self-attention; at "
        f"n = {lengths[0]}, {theirs[0] / ours[0]:.3g} times. From n = {lengths[-3]} to {lengths[-1]} the time grows as "
        f"n to the power **{powers[0]:.2f}** with self-attention, **{powers[1]:.2f}** with the LSTM."
    )
    columns = {
        "attention: ms": ours * 1e3,
        "LSTM: ms": theirs * 1e3,
        "ratio": theirs / ours,
        "attention: steps": [1] * len(lengths),
        "LSTM: steps": list(lengths),
        "attention: power": exponents(lengths, ours),
        "LSTM: power": exponents(lengths, theirs),
        "attention: M ops": [batch * attention_work(length, d) / 1e6 for length in lengths],
        "LSTM: M ops": [batch * lstm_work(length, d) / 1e6 for length in lengths],
    }
    numbers_table(time_table(lengths, columns))
    st.caption(
        f"{how_measured(timings)} Ratio: LSTM / self-attention. Steps: operations that have to wait for one another. "
        "Power: p in time ~ nᵖ, from the line above to this one. M ops: million multiply-adds, self-attention 2 n² d + "
        f"4 n d², projections included; LSTM 8 n d² for its four gates; equal at n = 2 d = {2 * d}. Where the clock "
        "says otherwise, it is the steps, and how well each kernel fills the machine."
    )


@st.fragment
def show_scoring(view: View) -> None:
    """The same head's scores by several functions, and what those cost."""
    attention, head = view.attention, view.head
    found = scoring_functions.multiplicative(attention, head)
    scores, scaled = attention.scores[head], attention.scaled[head]
    following = None if view.kind == "encoder_self" else view.trace.next_tokens
    rows, keys = row_names(attention.query_tokens, following), numbered(attention.key_tokens)
    maps = {"1  q · k": scores, "2  scaled": scaled, "3  x W xᵀ": found.scores}
    chart(
        score_maps(rows, keys, maps), key="why-scores", alt="Scores of one head by three scoring functions.", roomy=True
    )
    st.caption(
        f"Head {head} of layer {view.layer}, before the mask. 1: dot product. 2: divided by √{attention.d_k}. 3: "
        "multiplicative form with $W = W_Q W_K^\\top$, without biases. One colour range for all three. Rows are "
        "queries, columns keys. The additive form is not drawn: it needs weights that this model never trained."
    )
    st.markdown(_identity(attention, head, found))
    explain(
        "Dot product and multiplicative scores are matrix multiplications, which hardware does best; the additive "
        "form has to build and squash $d_k$ numbers for every pair before it can sum them. With large $d_k$ dot "
        "products grow: of independent components with mean 0 and variance 1, $q \\cdot k$ has mean 0 and variance "
        "$d_k$ (footnote 4), and the softmax ends where its gradient is tiny. So the paper divides by $\\sqrt{d_k}$.",
        r"\underbrace{q \cdot k}_{\text{dot product}} \qquad \underbrace{\tfrac{q \cdot k}{\sqrt{d_k}}}_{\text{scaled}}"
        r"\qquad \underbrace{q^{\top} W k}_{\text{Luong et al. 2015}} \qquad "
        r"\underbrace{v^{\top} \tanh(W_1 q + W_2 k)}_{\text{Bahdanau et al. 2015}}",
        "3.2.1",
    )
    _show_scoring_costs(view, attention, head)


def _identity(attention: Attention, head: int, found: scoring_functions.Multiplicative) -> str:
    scores, mask = attention.scores[head], attention.mask[head]
    error = np.abs(found.total - scores).max()
    peaks = [
        scoring_functions.softmax_peaks(values, mask).mean()
        for values in (scores, attention.scaled[head], found.scores)
    ]
    return (
        f"- **Multiplicative and dot product are one thing here.** With $W = W_Q W_K^\\top$, {found.w.shape[0]} × "
        f"{found.w.shape[1]} and of rank {attention.d_k} at most, $x W x^\\top$ of the head's inputs plus the terms "
        f"of its biases gives $q \\cdot k$ again: largest difference **{error:.1e}**, "
        f"of scores up to {np.abs(scores).max():.3g}.\n"
        f"- The biases alone: $b_Q$ with the key adds up to {np.abs(found.from_key).max():.3g}; the query with $b_K$ "
        f"{np.abs(found.from_query).max():.3g}, the same in a whole row, so the softmax does not see it; $b_Q$ "
        f"with $b_K$ {found.constant:.3g}.\n"
        f"- **Why scaled.** The largest weight in a row, on average, at τ = 1: {peaks[0]:.3f} with the bare dot "
        f"product, **{peaks[1]:.3f}** scaled, as the model does it, {peaks[2]:.3f} with 3 alone, unscaled."
    )


def _show_scoring_costs(view: View, attention: Attention, head: int) -> None:
    n, m, d_k = len(attention.query_tokens), len(attention.key_tokens), attention.d_k
    costs = scoring_functions.scoring_costs(n, m, d_k)
    rows = {name: (cost.multiply_adds, cost.tanhs, cost.numbers) for name, cost in costs.items()}
    st.markdown(f"**What they cost** for this head's {n} queries, {m} keys and $d_k$ = {d_k}")
    numbers_table(cost_table(rows, FORMULAS))
    st.caption(
        "W, W₁ and W₂ are $d_k$ × $d_k$, and are applied once to each query or key. For the times below they and v are "
        "seeded normal numbers, which no training has touched: they stand for cost and shape, and nothing else. "
        "q and k are this head's own, repeated until there are n of each."
    )
    timings = measure_on_request(
        "why-time-scoring",
        (d_k,),
        view.trace.device,
        lambda: scoring_functions.scoring_contenders(attention.q[head], attention.k[head], view.trace.device),
    )
    if not timings:
        return
    chart(
        time_chart(timings.lengths, timings.samples, SCORINGS, n),
        key="why-scoring-times",
        alt="Time of four scoring functions over the length.",
    )
    slower = timings.seconds[scoring_functions.ADDITIVE][-1] / timings.seconds[scoring_functions.DOT][-1]
    st.markdown(
        f"At n = {timings.lengths[-1]} the additive scores take **{slower:.3g} times** as long as the dot product."
    )
    milliseconds = {f"{name}, ms": seconds * 1e3 for name, seconds in timings.seconds.items()}
    numbers_table(time_table(timings.lengths, milliseconds))
    st.caption(how_measured(timings))


def how_measured(timings: Timings) -> str:
    """Conditions of a measurement, in a sentence."""
    return (
        f"Measured on {timings.conditions}, once and kept: {timings.rounds} rounds that take turns, each call "
        "right after an untimed one; medians, and the middle half of the rounds as bars. What else the machine did "
        "meanwhile is in them."
    )


def numbers_table(table: pd.DataFrame, floats: str = "%.3g") -> None:
    """A table without a scroll bar of its own; whole numbers with separators, others as `floats` says."""
    formats = dict.fromkeys(table.select_dtypes("float"), floats)
    formats |= dict.fromkeys(table.select_dtypes("integer"), "localized")
    config = {name: st.column_config.NumberColumn(format=found) for name, found in formats.items()}
    st.dataframe(table, hide_index=True, height="content", column_config=config, placeholder="")
