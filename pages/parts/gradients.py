"""Gradients: one function per tab."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis.attributions import (
    MEASURES,
    RANDOM_ORDERS,
    SHARES,
    Removal,
    Verdict,
    count_tokens,
    explained_kind,
    judge,
    measure_tokens,
)
from model.analysis.gradients import (
    MOST_ROWS,
    DistanceGradients,
    distance_gradients,
    rounding_of_streams,
    stream_gradients,
    stream_steps,
)
from model.analysis.softmax import softmax_jacobian
from model.background import rivals
from model.checkpoints.store import shown_name
from model.interventions import Intervention, ResidualOff, Unscaled
from model.needs import Need
from model.trace import Array, Attention, SubLayer
from pages.compute.cache import shared_result
from pages.compute.on_request import compute_on_request, compute_with_progress
from pages.compute.view import KINDS, View
from pages.frame.sidebar import TAUS
from pages.parts.rivals import TITLES, read_results
from pages.widgets.chart import axis_labels, chart
from pages.widgets.controls import choice, number, select, steps, table
from pages.widgets.explain import explain
from pages.widgets.export import Picture, export_tab
from pages.widgets.glossary import define
from pages.widgets.page_links import links
from pages.widgets.snippet import Call
from viz.charts.gradients import (
    distance_chart,
    jacobian_curves,
    jacobian_map,
    measure_bars,
    removal_chart,
    stream_chart,
)
from viz.charts.rivals import mean_gradients_chart
from viz.tokens import decoder_rows

WEIGHTS = {"trained": "as trained", "random": "random, before training"}
SEED = 0
"""of the random weights"""
RUN_NAMES = {
    "as it is": "as_it_is",
    "no residual connections": "no_residual",
    "no division by √d_k": "no_division",
    "neither": "neither",
}
"""of the runs in an export"""
CURVE = np.logspace(-2, 2, 61)
NAMES = {
    "gradient": "|gradient × input|",
    "weights": "attention weights",
    "norms": "norm-weighted attention",
    "zeroing": "value zeroing",
}
SHORT = ("gradient", "weights", "norms", "zeroing")
RANDOM = "random order"
REMOVALS = {"embedding": "its embedding set to 0", "attention": "hidden from attention"}
MOST_TOKENS = 100
"""of a run whose tokens are removed unasked"""


@st.fragment
def show_stream(view: View) -> None:
    """Norm of the gradient after each sub-layer, with and without residual connections and the division."""
    if _lacks(view, Need.STREAM):
        return
    seed = _choose_weights("gradients_weights")
    residual, divides = _removes_residual(view), view.attention.scale != 1
    runs: dict[str, tuple[Intervention, ...]] = {"as it is": ()}
    runs |= {"no residual connections": (ResidualOff(),)} if residual else {}
    runs |= {"no division by √d_k": (Unscaled(),)} if divides else {}
    runs |= {"neither": (ResidualOff(), Unscaled())} if residual and divides else {}
    calls = {
        name: Call(stream_gradients, *run, result=read_stream(*run))
        for name, changes in runs.items()
        for run in ((view.translator, view.trace, changes, seed),)
    }
    norms = {name: call.result for name, call in calls.items()}
    names = {stack: stream_steps(view.trace, stack) for stack in view.trace.streams}
    figure = stream_chart(names, norms)
    chart(figure, key="gradients-stream", alt="Norm of the gradient after each sub-layer, with and without its parts")
    single = Need.OWN_LAYERS not in view.translator.features
    rounding = {
        name: Call(rounding_of_streams, *call.args, result=read_rounding(*call.args))
        for name, call in (calls.items() if single else ())
    }
    table(_factors(norms, {name: call.result for name, call in rounding.items()}), floats="%.2g")
    st.caption(
        "L = −log p of the target, the sum over its tokens, in nats; the norm is over all tokens and dimensions. Read "
        "it from right to left, as the gradient flows. Each curve is a run of its own, and so has a loss of its own: "
        "**compare shapes, not heights**. "
        + (
            f"Random weights: drawn as at the start of training, seed {SEED}."
            if seed is not None
            else "The model was trained with all its parts: this shows what becomes of its gradient without them now."
        )
        + (" This model was trained without the division by √d_k." if view.attention.undivided else "")
        + ("" if residual else " Its sub-layers share residual connections, so that none can be removed alone.")
        + (
            " Computed in single precision: the last column says by which share a curve moves, at most, if one "
            "rounding moves each number of the embeddings. Within that share a curve means nothing."
            if single
            else " Computed in double precision, because single precision rounds too coarsely for the curves without "
            "residual connections."
        ),
        help=define("nats"),
    )
    _explain_stream(view.trace.sublayers[-1])
    named = {RUN_NAMES[name]: call for name, call in calls.items()}
    named |= {f"{RUN_NAMES[name]}_rounding": call for name, call in rounding.items()}
    export_tab(view, "gradients-layers", named, Picture("Gradient through the layers", "gradients-stream", figure))


def _factors(norms: Mapping[str, Mapping[str, Array]], rounding: Mapping[str, Mapping[str, Array]]) -> pd.DataFrame:
    """By which factor the gradient changes from a stack's last sub-layer back to its input, a line a run.

    And the largest of `rounding_of_streams`, where it was measured.
    """
    frame = pd.DataFrame({"run": list(norms)})
    for stack in norms["as it is"]:
        ends = [(found[stack][0], found[stack][-1]) for found in norms.values()]
        frame[f"{stack}: at the input / at the top"] = [first / last if last else np.nan for first, last in ends]
    if rounding:
        frame["moved by one rounding"] = [max(share.max() for share in rounding[name].values()) for name in norms]
    return frame


def _lacks(view: View, need: str) -> bool:
    """Whether the opened model lacks what a tab needs; says so."""
    missing = need not in view.translator.features
    if missing:
        st.text(f"This tab needs {need}, which the checkpoint {shown_name(view.translator.name)} does not have.")
    return missing


def _removes_residual(view: View) -> bool:
    """Whether each sub-layer of the model has a residual connection of its own."""
    try:
        ResidualOff().edits(view.translator.model)
    except ValueError:
        return False
    return True


PLACES = {
    "post": (
        "This model is post-norm, as in the paper: a norm follows each sum, so the gradient also passes the Jacobian "
        "of every norm (Xiong et al. 2020).",
        "J_F",
    ),
    "pre": (
        "This model is pre-norm: the identity goes through the whole stack.",
        r"J_F\,J_{\mathrm{norm}}",
    ),
    "sandwich": (
        "This model has a norm before each sub-layer and another one after it, inside the residual connection: the "
        "identity goes through the whole stack.",
        r"J_{\mathrm{norm}'}\,J_F\,J_{\mathrm{norm}}",
    ),
    "res-post": (
        "This model has a norm after each sub-layer, inside the residual connection, and none before it: the identity "
        "goes through the whole stack.",
        r"J_{\mathrm{norm}}\,J_F",
    ),
    "parallel": (
        "The sub-layers of one layer stand side by side in this model, on one residual connection: s counts layers, F "
        "is the sum of the sub-layers, and the identity goes through the whole stack.",
        r"J_F\,J_{\mathrm{norm}}",
    ),
}
"""by placement of the norm: what follows for the gradient, and the Jacobian of a sub-layer with its norms"""


def _explain_stream(last: SubLayer) -> None:
    place, with_norm = PLACES[last.placement]
    with_norm = with_norm if last.multiplier == 1 else rf"{last.multiplier:.4g}\,{with_norm}"
    before = r"\,J_{\mathrm{norm}}^{\top}" if last.placement == "post" else ""
    explain(
        "The residual connection adds the identity to the Jacobian of each sub-layer: whatever the sub-layer F does, "
        "the gradient also passes unchanged. Without it the gradient is multiplied by one Jacobian after another, and "
        f"shrinks or grows with their product. {place}",
        rf"""\begin{{aligned}}
\text{{with:}}\quad \frac{{\partial L}}{{\partial x^{{(s-1)}}}} &= (I + {with_norm})^{{\top}}{before}
\,\frac{{\partial L}}{{\partial x^{{(s)}}}} \\[4pt]
\text{{without:}}\quad \frac{{\partial L}}{{\partial x^{{(s-1)}}}} &= ({with_norm})^{{\top}}{before}
\,\frac{{\partial L}}{{\partial x^{{(s)}}}}
\end{{aligned}}""",
        "3.1; He et al. 2016, “Identity Mappings in Deep Residual Networks”, section 2; Xiong et al. 2020, “On Layer "
        "Normalization in the Transformer Architecture”, section 3",
    )


@st.fragment
def show_jacobian(view: View) -> None:
    """How the chosen row's weights respond to its scores, and how that depends on temperature."""
    if _lacks(view, Need.FULL_ROWS):
        return
    attention, head = view.attention, view.head
    rows, keys = axis_labels(attention)
    left, right = st.columns([2, 5], vertical_alignment="bottom")
    last = len(rows) - 1
    row = number(f"Row (query), 0 to {last}", (0, last), last // 2, "gradients_row", place=left)
    tau = steps("Temperature τ", {tau: f"{tau:g}" for tau in TAUS}, "gradients_tau", default=1.0, place=right)
    st.text(f"{view.place.title}, row {rows[row]}")
    run = attention, head, row, tau, CURVE.tolist()
    found = softmax_jacobian(*run)
    undivided = attention.scale if attention.scale != 1 and attention.reads_scaled else None
    figure = jacobian_map(found.matrix, keys)
    chart(figure, key="gradients-jacobian", alt="How each weight of the row responds to each score")
    second = jacobian_curves(CURVE, found.largest, found.frobenius, tau, undivided)
    chart(second, key="gradients-jacobian-size", alt="Largest eigenvalue and Frobenius norm over temperature")
    st.markdown(_describe_jacobian(view, row, tau))
    st.caption(
        f"diag(p) − p pᵀ, recomputed from what the softmax of this run reads, {_name_scores(attention)}. Colours go up "
        "to the largest "
        f"element, {np.abs(found.matrix).max():.3g}; none can be larger than 0.25. "
        "A raised score raises its own weight (diagonal, red) and lowers the others (blue); each row and column sums "
        "to 0. Both curves fall to 0 where all weight is on one key: there the softmax passes no gradient. For many "
        "equal weights they fall to 1/n and about 1/√n."
    )
    explain(
        "Section 3.2.1 of the paper: for large d_k the products grow large in magnitude, “pushing the softmax function "
        "into regions where it has extremely small gradients”. This matrix is that gradient. The division by √d_k is a "
        "temperature: without it τ would be 1 / √d_k. What reaches the scores x themselves is this matrix over τ.",
        r"""\begin{aligned}
p &= \mathrm{softmax}(x / \tau) \\
\frac{\partial p}{\partial (x / \tau)} &= \mathrm{diag}(p) - p\,p^{\top} \\
\lambda_{\max} &\le \tfrac{1}{2}, \text{ reached by two keys of weight } \tfrac{1}{2}
\end{aligned}""",
        "3.2.1",
    )
    pictures = (
        Picture("The Jacobian of the softmax", "gradients-jacobian", figure),
        Picture("Its size over temperature", "gradients-jacobian-size", second),
    )
    name = f"softmax-jacobian-{view.place.slug}-row-{row}"
    export_tab(view, name, Call(softmax_jacobian, *run, result=found), *pictures)


def _name_scores(attention: Attention) -> str:
    """What the softmax reads, x, in words."""
    x = "x = scores" if attention.scale == 1 else "x = scores / √d_k"
    if not math.isclose(attention.scale, attention.d_k**-0.5) and attention.scale != 1:
        x = f"x = scores · {attention.scale:.3g}"
    capped = "" if attention.softcap is None else ", capped"
    return x + capped + ("" if attention.bias is None else ", plus a bias for each pair")


def _describe_jacobian(view: View, row: int, tau: float) -> str:
    attention, head = view.attention, view.head
    marks = {f"τ = {tau:g}": tau}
    if attention.scale != 1 and attention.reads_scaled:
        marks[f"not divided by √d_k, τ = 1/√{attention.d_k} = {attention.scale:.3g}"] = attention.scale
    found = softmax_jacobian(attention, head, row, tau, list(marks.values()))
    lines = [
        f"- {name}: largest eigenvalue **{largest:.3g}**, Frobenius norm **{frobenius:.3g}**"
        for name, largest, frobenius in zip(marks, found.largest, found.frobenius, strict=True)
    ]
    return "\n".join(lines)


def show_distance(view: View) -> None:
    """The gradient over distance: this model on the sentence, three small models on the letters task."""
    _show_distance(view)
    links(why_attention="The three models, step by step and over length")


@st.fragment
def _show_distance(view: View) -> None:
    seed = _choose_weights("gradients_distance_weights", "random")
    run = view.translator, view.trace, seed
    found: DistanceGradients = compute_with_progress("gradients over distance", run, lambda: _each_row(*run))
    left, right = st.columns(2)
    with left:
        st.markdown("**This model**, this text: attention")
        figure = distance_chart(found.distance, found.norm, found.pairs)
        chart(figure, key="gradients-distance", alt="Norm of the gradient by distance, this model")
    measure = rivals.GRADIENT_AFTER if seed is None else rivals.GRADIENT_BEFORE
    results = {TITLES[name]: rivals.by_seed(read_results(), measure, name) for name in TITLES}
    with right:
        st.markdown("**Three small models** that reverse letters: with and without attention")
        second = mean_gradients_chart({"": results})
        chart(second, key="gradients-rivals", alt="Norm of the gradient by distance, two LSTMs and a Transformer")
    st.markdown(_describe_distance(found, results))
    count = len(view.trace.next_ids)
    st.caption(
        "‖∂(−log p)/∂x‖ of one predicted token at each embedded token x, the mean over all pairs at the same distance. "
        "The distance is the number of steps that a recurrent network takes between reading the one and predicting "
        "the other; with attention every token is one step away in each layer."
        + (f" Of this text, {MOST_ROWS} of the {count} rows, evenly spaced." if count > MOST_ROWS else "")
        + " The three small models: the mean of three seeds, on texts of eight letters. Different models, tasks and "
        "losses: **compare shapes, not heights**. Far distances have few pairs: hover to see how many. A trained LSTM "
        "has learned to carry its letters on; what the product of Jacobians does by itself shows with random weights."
    )
    explain(
        "A recurrent network carries what it has read through every step in between, so its gradient is a product of "
        "as many Jacobians, and tends to vanish or explode with the distance. Attention sums over all positions: one "
        "of the terms leads straight from the prediction to the token.",
        r"""\begin{aligned}
\text{recurrent:}\quad \frac{\partial L_t}{\partial x_j} &= \frac{\partial L_t}{\partial h_t}
\Bigl(\prod_{i=j+1}^{t} \frac{\partial h_i}{\partial h_{i-1}}\Bigr) \frac{\partial h_j}{\partial x_j} \\[4pt]
\text{attention:}\quad z_t &= \sum_j \alpha_{tj}\, v_j
\end{aligned}""",
        "4; Bengio et al. 1994, “Learning Long-Term Dependencies with Gradient Descent Is Difficult”",
    )
    calls = {
        "this_model": Call(distance_gradients, *run, result=found),
        "letters": Call(rivals.result_arrays, result=rivals.result_arrays()),
    }
    pictures = (
        Picture("Gradient over distance: this model", "gradients-distance", figure),
        Picture("Gradient over distance: three small models", "gradients-rivals", second),
    )
    export_tab(view, "gradients-distance", calls, *pictures)


def _each_row(*run: object) -> Iterator[tuple[float, DistanceGradients]]:
    for found in distance_gradients(*run):
        yield found.done, found


def _describe_distance(found: DistanceGradients, results: Mapping[str, tuple[Array, Array]]) -> str:
    curves = {"This model": (found.distance, found.norm)}
    curves |= {name: (at, values.mean(axis=0)) for name, (at, values) in results.items()}
    lines = []
    for name, (at, norms) in curves.items():
        seen = norms > 0
        if seen.sum() > 1:
            factor = math.exp(np.polyfit(at[seen], np.log(norms[seen]), 1)[0])
            lines.append(f"- {name}: a factor of **{factor:.3g}** a step, distances {at[seen][0]} to {at[seen][-1]}")
    how = "A straight line fitted to the logarithms by least squares, even where the curve is not straight:"
    return f"{how}\n\n" + "\n".join(lines)


def show_explanation(view: View) -> None:
    """Four measures of what each token mattered for one prediction, and tokens removed in their order."""
    _show_explanation(view)
    links(model_card="The model card: is attention an explanation?")


@st.fragment
def _show_explanation(view: View) -> None:
    if _lacks(view, Need.MATRICES):
        return
    trace, kind = view.trace, explained_kind(view.translator)
    layer = view.layer if view.layer in kind.layers else kind.layers[-1]
    rows = dict(enumerate(f"{i} {row}" for i, row in enumerate(decoder_rows(trace.row_tokens, trace.next_tokens))))
    left, right = st.columns([3, 3])
    row = min(select("The row that", rows, "gradients_at", default=len(rows) // 2, place=left), len(rows) - 1)
    removal = choice("A token is removed by", REMOVALS, "gradients_removal", place=right)
    measured = view.translator, trace, layer, [row]
    values = _at_once_or_asked(view, "Measure each token", "gradients_measure", measured[1:], _each_measure, *measured)
    if values is None:
        st.caption("This text is long: nothing is measured until you press the button.")
        return
    n = count_tokens(kind, trace, row)
    tokens = trace.streams[kind.keys].tokens.labels[:n]
    shares = {NAMES[name]: _share(found[0, :n]) for name, found in values.items()}
    figure = measure_bars(tokens, shares)
    chart(figure, key="gradients-measures", alt="How much each token mattered, by four measures")
    st.caption(
        f"{KINDS[kind.name]}, all heads of layer {layer}, which the sidebar chooses; each measure divided by its sum. "
        f"Gradient × input: of log p of this row's token, at the embedding of each token it may read"
        + (", which passes through all layers." if len(kind.layers) > 1 else ".")
    )
    label, case = "Remove tokens in the order of each measure", (*measured[1:], removal)
    verdict = _at_once_or_asked(view, label, "gradients_one", case, _each_order, view, layer, [row], removal)
    calls = {"measures": Call(measure_tokens, *measured, result=values)}
    pictures = [Picture("What each token mattered", "gradients-measures", figure)]
    if verdict is not None:
        st.markdown("**The referee**: tokens are removed, or put back, in the order of each measure")
        second = removal_chart(SHARES, _curves(verdict))
        chart(second, key="gradients-removal", alt="log p while tokens are deleted and put back", roomy=True)
        _show_verdict(verdict)
        calls["removal"] = Call(judge, *measured, removal, result=verdict)
        pictures.append(Picture("Deletion and insertion", "gradients-removal", second))
    verdict = _judge_all(view, layer, removal)
    if verdict is not None:
        third = removal_chart(SHARES, _curves(verdict))
        chart(third, key="gradients-removal-all", alt="The same, mean over all rows", roomy=True)
        _show_verdict(verdict)
        every = list(range(len(trace.next_ids)))
        calls["every_row"] = Call(judge, view.translator, trace, layer, every, removal, result=verdict)
        pictures.append(Picture("Deletion and insertion, every row", "gradients-removal-all", third))
    _explain_referee()
    export_tab(view, f"attention-explains-row-{row}", calls, *pictures)


def _share(values: Array) -> Array:
    return values / values.sum() if values.sum() else values


def _at_once_or_asked(
    view: View, label: str, key: str, case: tuple, steps: Callable[..., Iterator[tuple[float, Any]]], *args: Any
) -> Any:
    """The result of `steps(*args)`: at once for a short text; for a long one on request, None before."""
    if sum(len(stream.tokens) for stream in view.trace.streams.values()) <= MOST_TOKENS:
        return compute_with_progress(key, case, lambda: steps(*args))
    return compute_on_request(label, key, case, lambda: steps(*args))


def _each_measure(*run: Any) -> Iterator[tuple[float, dict[str, Array]]]:
    for values in measure_tokens(*run):
        yield float(np.isfinite(values["zeroing"]).mean()), values


def _judge_all(view: View, layer: int, removal: Removal) -> Verdict | None:
    rows = list(range(len(view.trace.next_ids)))
    label, case = f"The same for all {len(rows)} rows", (view.trace, layer, removal)
    return compute_on_request(label, "gradients_all", case, lambda: _each_order(view, layer, rows, removal))


def _each_order(view: View, layer: int, rows: list[int], removal: Removal) -> Iterator[tuple[float, Verdict]]:
    for verdict in judge(view.translator, view.trace, layer, rows, removal):
        yield verdict.done, verdict


def _curves(verdict: Verdict) -> dict[str, Array]:
    names = (*(NAMES[name] for name in MEASURES), RANDOM)
    return dict(zip(names, verdict.log_p.mean(axis=0), strict=True))


def _show_verdict(verdict: Verdict) -> None:
    """One line a measure: how good its order is, and Spearman's rank correlation with the other measures."""
    names = [NAMES[name] for name in MEASURES]
    defined = np.isfinite(verdict.agreement)
    agreement = np.where(defined, verdict.agreement, 0).sum(axis=0) / np.maximum(defined.sum(axis=0), 1)
    agreement = np.where(defined.any(axis=0), agreement, np.nan)
    frame = pd.DataFrame({"ordered by": [*names, RANDOM]})
    frame["deletion: log p lost"] = verdict.deletion.mean(axis=0)
    frame["insertion: log p gained"] = verdict.insertion.mean(axis=0)
    for name, column in zip(SHORT, agreement.T, strict=True):
        frame[f"ρ with {name}"] = np.append(column, np.nan)
    table(frame, floats="%.3f")
    orders = [*names, RANDOM]
    best = {what: orders[int(getattr(verdict, what).mean(axis=0).argmax())] for what in ("deletion", "insertion")}
    st.caption(
        f"Mean over the eleven shares, in nats{' and over all rows' if len(verdict.log_p) > 1 else ''}; larger is "
        f"better. Best here by deletion: {best['deletion']}; by insertion: {best['insertion']}. Random order: the mean "
        f"of {RANDOM_ORDERS}. ρ: Spearman's rank correlation between two measures, +1 the same order, 0 no relation.",
        help=define("nats"),
    )


def _explain_referee() -> None:
    explain(
        "**Does attention explain?** Jain and Wallace (2019) found that attention weights correlate weakly with "
        "gradients, so that they cannot both say why; Wiegreffe and Pinter (2019) answered that a weak correlation "
        "with another measure does not make weights wrong. So neither measure is the judge here: tokens are. If an "
        "order is right, deleting its first tokens hurts most, and putting them back helps most. This asks what the "
        "prediction needs on this text, not how people would explain it; a text with tokens removed is also one that "
        "the model never saw.",
        r"""\begin{aligned}
\text{gradient} \times \text{input:}\quad r_j &= \bigl|x_j \cdot \nabla_{x_j} \log p(y_t)\bigr| \\
\text{attention weights:}\quad r_j &= \tfrac{1}{h} \textstyle\sum_i \alpha^{(i)}_{tj} \\
\text{norm-weighted:}\quad r_j &= \bigl\| \textstyle\sum_i \alpha^{(i)}_{tj}\, v^{(i)}_j W_O^{(i)} \bigr\| \\
\text{value zeroing:}\quad r_j &= 1 - \cos\bigl(x'_t,\, x'_{t \setminus v_j}\bigr) \\
\text{deletion:}\quad \mathrm{AOPC} &= \tfrac{1}{K+1} \textstyle\sum_{k=0}^{K} \log p(y_t \mid x) - \log p(y_t
\mid x \setminus \text{first } k) \\
\text{insertion:}\quad & \tfrac{1}{K+1} \textstyle\sum_{k=0}^{K} \log p(y_t \mid \text{first } k) - \log p(y_t \mid
\text{none})
\end{aligned}""",
    )
    st.caption(
        "Jain & Wallace 2019, “Attention is not Explanation”, section 4.1; Wiegreffe & Pinter 2019, “Attention is not "
        "not Explanation”; Kobayashi et al. 2020, “Attention is Not Only a Weight”, section 3, here with the heads "
        "added; Mohebbi et al. 2023, “Quantifying Context Mixing in Transformers”, section 3; Samek et al. 2017, "
        "“Evaluating the Visualization of What a Deep Neural Network Has Learned”, section III; for insertion Petsiuk "
        "et al. 2018, “RISE: Randomized Input Sampling for Explanation of Black-box Models”; for α and W_O Vaswani et "
        "al. 2017, section 3.2."
    )


def _choose_weights(key: str, default: str = "trained") -> int | None:
    """The seed of random weights; None for the trained ones."""
    return SEED if choice("Weights", WEIGHTS, key, default=default) == "random" else None


read_stream = shared_result("Back-propagating through the run …")(stream_gradients)
read_rounding = shared_result("Measuring what rounding does …")(rounding_of_streams)
