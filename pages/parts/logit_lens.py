"""Layer by layer, tabs "Logit lens" and "Neurons"."""

import numpy as np
import streamlit as st

from model.analysis import tab_arrays as tab
from model.analysis.logit_lens import logit_lens
from model.checkpoints.checkpoint import LogitsHead
from model.trace import Array, SubLayer
from pages.compute.cache import shared_result
from pages.compute.view import View
from pages.parts.layer_by_layer import Shown
from pages.views.since_2017 import BASES
from pages.widgets.chart import chart
from pages.widgets.controls import slider, toggle
from pages.widgets.explain import explain
from pages.widgets.export import export_tab
from pages.widgets.snippet import Call
from viz.charts.logit_lens import lens_curves, lens_grid, lens_map, neuron_chart, neuron_table
from viz.latex import latex_number
from viz.tokens import labels

PIECES = 5
"""tokens listed for each neuron"""


@st.fragment
def show_lens(view: View, shown: Shown) -> None:
    """The last stack's residual stream read by the output matrix: one row as tokens, then all rows as a map."""
    if shown.stack != _last_stack(view):
        st.info(
            "The output matrix reads only the decoder. The encoder's output is read by the decoder's "
            "cross-attention. Choose the decoder above.",
            icon=":material/info:",
        )
        return
    found = read_lens(view.translator, view.trace)
    every = toggle("After every sub-layer, not just every layer", "layers_every")
    at = np.arange(len(found.steps)) if every else np.flatnonzero(found.ends)
    steps = [_step_label(found.steps[i], every) for i in at]
    _show_row(view, shown, at, steps)
    st.markdown("**All rows**: the probability, at each step, of the token that the row finally predicts")
    names = shown.rows, view.translator.tokenizer.tokens(found.predicted.tolist())
    everything = lens_map(found.probability[at].T, found.rank[at].T, steps, names, shown.position)
    chart(everything, key="layers-lens-map", alt="Probability of each row's finally predicted token, by step")
    pre, tied = view.translator.config.norm != "post", view.translator.config.tie_embeddings
    norms = (sublayer.norm or sublayer.result_norm for sublayer in view.trace.sublayers)
    norm = next((norm.kind for norm in norms if norm), "Norm")
    x = rf"\mathrm{{{norm}}}(x^{{(s)}})" if pre else "x^{(s)}"
    head = view.translator.logits_head
    explain(
        _caveat(pre, tied, head),
        rf"\mathrm{{logits}}^{{(s)}} = {_formula(head, x)}, \qquad "
        r"p^{(s)} = \mathrm{softmax}(\mathrm{logits}^{(s)})",
    )
    export_tab(view, "logit-lens", Call(logit_lens, view.translator, view.trace, result=found))


def _show_row(view: View, shown: Shown, at: Array, steps: list[str]) -> None:
    """The chosen row read at the steps `at`, as tokens and as curves."""
    found, row, tokenizer = read_lens(view.translator, view.trace), shown.position, view.translator.tokenizer
    followed = tokenizer.tokens([int(found.predicted[row])])[0]
    st.text(
        f"Row {shown.rows[row]}. Framed and traced in the curves: {labels([followed])[0]}, the most probable token at "
        "the last step."
    )
    tops = [tokenizer.tokens(found.top[i, row].tolist()) for i in at]
    left, right = st.columns([3, 2])
    with left:
        grid = lens_grid(tops, found.probabilities[at, row], steps, followed)
        chart(grid, key="layers-lens", alt="The most probable tokens when each step is read as if it were the last")
    with right:
        curves = lens_curves(found.probability[at, row], found.rank[at, row], steps, view.trace.logits.shape[-1])
        chart(curves, key="layers-lens-curves", alt="Probability and rank of the token finally predicted, by step")
    shares = found.probabilities[at, row].sum(axis=-1)
    st.caption(
        f"Colours: probability over the whole vocabulary, 0 to 1. The {len(tops[0])} tokens shown have "
        f"{shares.min():.1%} to {shares.max():.1%} of it together. The last line and the model's own logits differ by "
        f"at most {found.difference:g}."
    )


def has_neurons(view: View) -> bool:
    """Whether the feed-forwards' inner activations were read, and what they write can be projected on the logits."""
    feed_forwards = [sublayer for sublayer in view.trace.sublayers if sublayer.name == "feed_forward"]
    width = view.translator.output_matrix().shape[-1]
    return all(each.hidden is not None and each.out.shape[-1] == width for each in feed_forwards)


@st.fragment
def show_neurons(view: View, shown: Shown) -> None:
    """The feed-forward of the chosen step's layer as a sum over its neurons, and the tokens the largest promote."""
    sublayer = _feed_forward(view, shown)
    most = slider("Neurons to show", (3, 30), 10, "layers_neurons", width=300)
    run = view.translator, view.trace, shown.stack, sublayer.layer, shown.position, most
    found = tab.token_neurons(*run)
    active, size = int((found.hidden > 0).sum()), len(found.hidden)
    st.markdown(
        f"Layer {sublayer.layer}'s feed-forward, {shown.stack}, at this token: **{active} of {size:,} neurons are "
        f"active** (above 0, {active / size:.1%})."
    )
    st.text(f"Token {shown.rows[shown.position]}")
    chart(neuron_chart(found.hidden, found.top), key="layers-neurons", alt="The activation of every hidden neuron")
    promoted = np.argsort(-found.logits, axis=-1, kind="stable")[:, :PIECES]
    pieces = [view.translator.tokenizer.tokens(ids.tolist()) for ids in promoted]
    gains = np.take_along_axis(found.logits, promoted, axis=-1)
    table = neuron_table(found.top, found.hidden, found.written, pieces, gains)
    if shown.stack == _last_stack(view):
        predicted = int(view.trace.logits[shown.position].argmax())
        table["for what is predicted"] = found.logits[:, predicted]
    formats = {name: st.column_config.NumberColumn(format="%.3f") for name in table.select_dtypes("floating")}
    st.dataframe(table, hide_index=True, height="content", column_config=formats, width="stretch")
    biased = " plus b_2" if view.translator.second_matrix(shown.stack, sublayer.layer)[1].any() else ""
    share = found.written[found.top].sum() / found.written.sum() if len(found.top) else 0
    st.caption(
        f"These {len(found.top)} account for {share:.1%} of the sum of ‖h w‖ over all {size:,} neurons; "
        f"{_inactive(view)} The sum of all h w{biased} is the sub-layer's output: largest difference {found.error:.1e}."
        + (
            " “For what is predicted”: contribution to the logit of the row's predicted token."
            if shown.stack == _last_stack(view)
            else ""
        )
    )
    _explain_neurons(view, shown.stack, bool(biased))
    export_tab(view, f"neurons-{shown.stack}-layer-{sublayer.layer}", Call(tab.token_neurons, *run, result=found))


def _inactive(view: View) -> str:
    """What a neuron does whose activation is not above 0."""
    if view.translator.config.activation == "relu":
        return "an inactive neuron contributes nothing."
    return "one with h below 0 takes its row away."


_FUNCTIONS = {
    "gelu": r"\mathrm{GELU}",
    "gelu, by tanh": r"\mathrm{GELU}_{\tanh}",
    "silu": r"\mathrm{Swish}",
}
"""LaTeX of what is applied to each neuron, or to its gate"""
_UNREAD = r"\mathrm{act}"


def _explain_neurons(view: View, stack: str, biased: bool) -> None:
    config = view.translator.config
    base = BASES.get(config.activation, config.activation.removeprefix("gated "))
    b_1, b_2 = (" + b_1", " + b_2") if biased else ("", "")
    z = r"x W_{\mathrm{gate}}" if config.gated else f"xW_1{b_1}"
    act = rf"\max(0,\, {z})" if base == "relu" else f"{_FUNCTIONS.get(base, _UNREAD)}({z})"
    act += rf" \odot xW_1{b_1}" if config.gated else ""
    head = view.translator.logits_head
    layers = ", the layers before the output matrix" if head.layers else ""
    explain(
        "Each neuron i writes its row w of W_2, scaled by h. Projecting h w with the output matrix shows which "
        "tokens' logits it raises most, and by how much (Geva et al. 2021, “Transformer Feed-Forward Layers Are "
        "Key-Value Memories”; Geva et al. 2022, “Transformer Feed-Forward Layers Build Predictions by Promoting "
        "Concepts in the Vocabulary Space”). **Not included**: the norms between here and the output"
        f"{layers}{', b_2,' if biased else ''} and everything that later sub-layers do with it."
        + (
            " In the encoder this is a hint at best: the output matrix never reads the encoder."
            if stack != _last_stack(view)
            else ""
        ),
        rf"\mathrm{{FFN}}(x) = \sum_{{i=1}}^{{d_{{ff}}}} h_i\,w_i{b_2}, \qquad h = {act}, \qquad "
        rf"\Delta\mathrm{{logits}} = {_scale(head)}W_{{out}}\,(h_i\,w_i)",
        "3.3",
    )


def _last_stack(view: View) -> str:
    """The stack that the output matrix reads."""
    return list(view.trace.streams)[-1]


def _formula(head: LogitsHead, x: str) -> str:
    """LaTeX of the logits, from x."""
    x = rf"f({x})" if head.layers else x
    logits = rf"{_scale(head)}{x}\,W_{{out}}^{{\top}}" + (r" + b_{out}" if head.bias else "")
    return logits if head.softcap is None else rf"{head.softcap:g}\tanh\big(({logits}) / {head.softcap:g}\big)"


def _scale(head: LogitsHead) -> str:
    return rf"{latex_number(head.scale, 4)}\," if head.scale != 1 else ""


def _caveat(pre: bool, tied: bool, head: LogitsHead) -> str:
    read = "is fed to the output matrix unchanged"
    if head.layers:
        read = "goes through f, the layers that this model has before its output matrix"
    text = "The logit lens (nostalgebraist 2020) reads every step **as if it were the last**. " + (
        "This model is pre-norm, so the final norm is applied first, as on the last step. "
        if pre
        else "This model is post-norm: each step's output is already normalised, with that step's own γ and β, and "
        f"{read}. Only the last layer was trained to be read this way: early lines hint at what the stream contains, "
        "not at what the model “thinks”. "
    )
    return text + (
        "The first line reads the input: output and embeddings share a matrix, so it mostly finds the token that the "
        "row reads, or similar ones."
        if tied
        else ""
    )


def _step_label(step: str, every: bool) -> str:
    return step if every or step == "input" else f"layer {step.split()[0]}"


def _feed_forward(view: View, shown: Shown) -> SubLayer:
    layer = 0 if shown.step == 0 else int(shown.step_name.split()[0])
    return tab.feed_forward(view.trace, shown.stack, layer)


read_lens = shared_result("Applying the output matrix to every step …")(logit_lens)
