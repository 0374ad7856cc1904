"""Since 2017: which parts this model has, and one function per tab."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from model.analysis import since_2017 as since
from model.analysis import tab_arrays as tab
from model.analysis.residual_stream import measure_stream
from model.analysis.view_arrays import stream_arrays
from model.background.attention_costs import layer_sizes
from model.background.studies import read_study
from model.checkpoints.store import CheckpointError, available_checkpoints, stored_config
from model.needs import Need
from model.network.config import TransformerConfig
from model.trace import Attention, Trace
from pages.compute.view import View
from pages.frame.open_page import choose_checkpoint
from pages.widgets import controls
from pages.widgets.chart import chart
from pages.widgets.export import Picture, export_tab
from pages.widgets.snippet import Call
from viz.charts import since_2017 as charts
from viz.charts.studies import parts_chart
from viz.latex import multiplied, number
from viz.tokens import as_markdown

POSITIONS = {
    "sinusoidal": "sinusoids, added to the embeddings",
    "learned": "a learned table, added to the embeddings",
    "rope": "RoPE",
    "alibi": "ALiBi",
    "relative bias": "a learned bias for each distance, added to the scores",
    "none": "none",
    "unread": "could not be read",
}
PLACES = {
    "post": "post-norm",
    "pre": "pre-norm",
    "sandwich": "before each sub-layer, and again after it",
    "res-post": "after each sub-layer, before the sum",
    "parallel": "before two sub-layers that stand side by side",
}
ACTIVATIONS = {
    "relu": "ReLU",
    "gelu": "GELU",
    "gelu, by tanh": "GELU (tanh approximation)",
    "silu": "Swish",
    "swiglu": "SwiGLU",
    "geglu": "GeGLU",
    "geglu, by tanh": "GeGLU (GELU by its tanh approximation)",
    "gated relu": "ReGLU",
    "other": "a function that could not be read",
}
CURVES = {
    "relu": "max(0, z)",
    "gelu": "GELU(z) = z Φ(z)",
    "gelu, by tanh": "GELU(z), Φ approximated by tanh",
    "silu": "Swish(z) = z σ(z)",
}
BASES = {"swiglu": "silu", "geglu": "gelu", "geglu, by tanh": "gelu, by tanh"}
"""what a gated feed-forward applies to its gate"""


def _positions(view: View) -> str:
    rotary = _self_attention(view).rotary
    if rotary is None:
        return POSITIONS[view.translator.config.positions]
    turned, d_k = 2 * rotary.cos.shape[-1], rotary.q.shape[-1]
    return POSITIONS["rope"] + (f", on {turned} of {d_k} dimensions" if turned < d_k else "")


def _self_attention(view: View) -> Attention:
    """Of the chosen layer, or of the stack that cross-attention's queries come from."""
    attention = view.attention
    if not attention.crosses:
        return attention
    return view.trace.attention(f"{view.trace.kind(view.kind).queries}_self", view.layer)


def _norm_kind(view: View) -> str:
    norms = [norm for sub in view.trace.sublayers for norm in (sub.norm, sub.result_norm) if norm is not None]
    kinds = dict.fromkeys(norm.kind for norm in norms)
    return " and ".join(kinds) or "none"


def _activation(view: View) -> str:
    config = view.translator.config
    return ACTIVATIONS.get(config.activation, config.activation) if config.d_ff else "could not be read"


def _sharing(view: View) -> str:
    config = view.translator.config
    if config.kv_heads == config.n_heads:
        return f"multi-head: each of the {config.n_heads} query heads has its own"
    name = "multi-query" if config.kv_heads == 1 else "grouped-query"
    return f"{name}: {config.n_heads} query heads share {config.kv_heads}"


@dataclass(frozen=True)
class Part:
    """One part of the paper's layer, and what most models have in its place."""

    name: str
    of_2017: str
    since: str
    own: Callable[[View], str]
    """what the opened model has, in words"""
    modern: Callable[[TransformerConfig], bool]
    """whether a model has the later part"""


PARTS = {
    "rope": Part(
        "Positions",
        "sinusoids, added to the embeddings",
        "RoPE: queries and keys are rotated",
        _positions,
        lambda config: config.positions == "rope",
    ),
    "rms_norm": Part(
        "Norm",
        "LayerNorm",
        "RMSNorm",
        _norm_kind,
        lambda config: config.norm_function == "rms_norm",
    ),
    "pre_norm": Part(
        "Place of the norm",
        "after the sum: post-norm",
        "before the sub-layer: pre-norm",
        lambda view: PLACES[view.trace.sublayers[-1].placement],
        lambda config: config.norm == "pre",
    ),
    "swiglu": Part(
        "Feed-forward",
        "ReLU",
        "SwiGLU: gate times up",
        _activation,
        lambda config: config.gated,
    ),
    "gqa": Part(
        "Keys and values",
        "multi-head: each query head has its own",
        "multi-query, grouped-query: several query heads share them",
        _sharing,
        lambda config: config.kv_heads < config.n_heads,
    ),
}


FORMULAS = {
    "post": (
        r"\text{post-norm, 2017:}",
        r"x^{(s)} = \mathrm{Norm}\big(x^{(s-1)} + \mathrm{Sublayer}(x^{(s-1)})\big)",
    ),
    "pre": (r"\text{pre-norm:}", r"x^{(s)} = x^{(s-1)} + \mathrm{Sublayer}\big(\mathrm{Norm}(x^{(s-1)})\big)"),
    "sandwich": (
        r"\text{this model, norms on both sides:}",
        r"x^{(s)} = x^{(s-1)} + \mathrm{Norm}'\big(\mathrm{Sublayer}(\mathrm{Norm}(x^{(s-1)}))\big)",
    ),
    "res-post": (
        r"\text{this model, norm of what is added (res-post-norm):}",
        r"x^{(s)} = x^{(s-1)} + \mathrm{Norm}\big(\mathrm{Sublayer}(x^{(s-1)})\big)",
    ),
    "parallel": (
        r"\text{this model, sub-layers side by side:}",
        r"x^{(l)} = x^{(l-1)} + \mathrm{Attention}\big(\mathrm{Norm}(x^{(l-1)})\big)"
        r" \\ {} + \mathrm{FFN}\big(\mathrm{Norm}'(x^{(l-1)})\big)",
    ),
}
"""the name of each place of the norm, and its formula over sub-layers s or layers l"""
PLACEMENTS = {
    "pre": "This model is pre-norm: sub-layers read a normalised copy and add to the stream itself",
    "sandwich": "This model is pre-norm, with a second norm of what each sub-layer computed: sub-layers read a "
    "normalised copy and add a normalised vector to the stream itself",
    "res-post": "This model normalises only what each sub-layer computed, before it adds that: sub-layers read the "
    "stream itself and add a normalised vector to it",
    "parallel": "In this model self-attention and feed-forward stand side by side: both read a normalised copy of the "
    "layer’s input and add to the stream itself",
}


@dataclass(frozen=True)
class Token:
    """The token that all tabs look at."""

    stack: str
    position: int


def token_of(view: View) -> Token:
    """The one that the menu above the tabs has."""
    return Token(view.stream.name, st.session_state["since_token"])


def show_overview(view: View) -> None:
    """The five parts, then and since, and which of them this model has."""
    config = view.translator.config
    lines = [
        f"| {part.name} | {part.of_2017} | {part.since} | {'**' * (new := part.modern(config))}{part.own(view)}"
        f"{'**' * new} |"
        for part in PARTS.values()
    ]
    head = ["| | 2017 | most models since | this model |", "|---|---|---|---|"]
    st.markdown("\n".join([*head, *lines]))


def _offer(part: str) -> None:
    """A button that opens a checkpoint with this part, on the same tab."""
    for name in available_checkpoints():
        try:
            found = PARTS[part].modern(stored_config(name))
        except CheckpointError:
            continue
        if found:
            label = f"Open {as_markdown(name)}, which has it"
            st.button(label, key="open-with", icon=":material/swap_horiz:", on_click=choose_checkpoint, args=(name,))
            return
    st.caption("No checkpoint with this part is in the folder of checkpoints.")


def _missing(part: str, sentence: str) -> None:
    """Where the opened model lacks a part: a sentence, and the button that opens a model with it."""
    with st.container(border=True):
        st.markdown(sentence)
        _offer(part)


def _draw(figure: Any, key: str, title: str, alt: str) -> Picture:
    """Draw a figure, and return it for the export."""
    chart(figure, key=key, alt=alt)
    return Picture(title, key, figure)


def _equations(*equations: str, sources: str) -> None:
    for equation in equations:
        st.latex(equation)
    st.caption(sources)


def show_placement(view: View, token: Token) -> None:
    """Where the norm stands, and what that does to the residual stream's length."""
    placement = view.trace.streams[token.stack].sublayers[-1].placement
    lines = [r" \\ ".join(FORMULAS[name]) for name in dict.fromkeys(("post", "pre", placement))]
    multiplier = view.trace.streams[token.stack].sublayers[-1].multiplier
    if multiplier != 1:
        formula = multiplied(FORMULAS[placement][1], multiplier)
        lines.append(rf"\text{{this model, what is added is multiplied:}} \\ {formula}")
    primed = r"\mathrm{Norm}'" in FORMULAS[placement][1]
    several = " Norm′ learns parameters of its own, or shares those of Norm." if primed else ""
    _equations(
        r"\begin{gathered}" + r" \\[0.6em] ".join(lines) + r"\end{gathered}",
        sources="Vaswani et al. 2017, section 3.1; Xiong et al. 2020, “On Layer Normalization in the Transformer "
        f"Architecture”, table 1.{several}",
    )
    post = placement == "post"
    if post:
        _missing("pre_norm", "**This model is post-norm**, as in 2017.")
    found = measure_stream(view.trace, token.stack)
    stream_picture = _draw(
        charts.stream_chart(found.norm, found.added, found.share, found.steps, token.position, post),
        key="since-stream",
        title="Residual stream",
        alt="Length of the residual stream after every sub-layer, and the share of each sub-layer in its sum",
    )
    lengths = found.norm[token.position]
    grown = f"from {number(lengths[0])} at the input to {number(lengths[-1])} after the last sub-layer"
    if post:
        st.markdown(
            f"Each norm sets the length anew: it goes {grown}. The stream and its gradients "
            "pass through every norm, and without a warm-up of the learning rate such a model trains badly (Xiong et "
            "al. 2020). In a pre-norm model nothing on the way is normalised, and the stream can grow."
        )
    else:
        last = view.translator.norm_after(token.stack) is not None
        st.markdown(
            f"{PLACEMENTS[placement]}, which no norm shortens: its length goes {grown}. Gradients reach every layer "
            f"along the sum{', and one last norm follows the last layer' if last else ''}."
        )
    st.caption(
        "Share: ‖Sublayer(x)‖ / (‖x‖ + ‖Sublayer(x)‖), 0.5 = what is added is as long as what was there (dotted). "
        "Thin grey lines: the other tokens of this text."
    )
    export_tab(
        view,
        "residual-lengths",
        Call(stream_arrays, view.trace, token.stack, ("norm", "added", "share")),
        stream_picture,
    )


def show_gate(view: View, token: Token) -> None:
    """The neurons of one feed-forward at one token: activation, gate times up, and the largest products."""
    _equations(
        r"\mathrm{FFN}_{\mathrm{ReLU}}(x) = \max(0,\, xW_1 + b_1)\,W_2 + b_2",
        r"\mathrm{FFN}_{\mathrm{SwiGLU}}(x) = \big(\mathrm{Swish}(xW_{\mathrm{gate}}) \odot xW_1\big)\,W_2",
        r"\mathrm{Swish}(z) = z\,\sigma(z)",
        sources="Vaswani et al. 2017, equation 2; Shazeer 2020, “GLU Variants Improve Transformer”, section 2, "
        "where W_gate is called W, and W_1 V.",
    )
    activation, gated = view.translator.config.activation, view.translator.config.gated
    try:
        found = since.activations(view.translator, view.trace, token.stack, view.layer, token.position)
    except LookupError:
        st.info("The inside of this model's feed-forward layers could not be read.", icon=":material/info:")
        return
    if not gated:
        _missing("swiglu", f"**This model's feed-forward has no gate**: it applies {_activation(view)}.")
    call = Call(since.activations, view.translator, view.trace, token.stack, view.layer, token.position, result=found)
    name = CURVES.get(BASES.get(activation, activation.removeprefix("gated ")), "act(z), through the neurons")
    largest = "activations" if found.up is None else "products"
    left, right = st.columns(2) if found.up is not None else (st.container(), None)
    with left:
        curve = charts.activation_chart(
            found.curve, found.z, found.activated, found.top, (name, f"the largest {largest}")
        )
        alt = "The activation function with every neuron of this token on it"
        pictures = [_draw(curve, key="since-activation", title="Activation", alt=alt)]
    columns = {"neuron": found.top, "z": found.z[found.top], "act(z)": found.activated[found.top]}
    if found.up is not None:
        with right:
            gate = charts.gate_chart(found.activated, found.up, found.top)
            alt = "Gate and up of every neuron of this token, coloured by their product"
            pictures.append(_draw(gate, key="since-gate", title="Gate and up", alt=alt))
        columns |= {"up": found.up[found.top], "act(z) × up": found.hidden[found.top]}
    controls.table(pd.DataFrame(columns), floats="%.5g")
    size, zeros = len(found.hidden), int((found.hidden == 0).sum())
    st.markdown(
        f"Layer {view.layer}, {size:,} neurons at this token: **{zeros:,} ({zeros / size:.1%}) are exactly 0**. "
        + (
            f"There is no gate: {_activation(view)} is applied to one projection of x, and W_2 reads the result."
            if found.up is None
            else "The gate scales up, neuron by neuron."
            + (
                ""
                if "relu" in activation
                else " Unlike ReLU it has no flat half: where z is negative it is small, but hardly ever 0."
            )
        )
    )
    st.caption(
        f"Rings: the {len(found.top)} neurons with the largest {largest}, as in the table. "
        + ("" if found.up is None else "Colours end at the smallest of these products. ")
        + ("Gate, up and product" if found.up is not None else "The values of act(z)")
        + " are tensors of the run"
        + (
            "; z is, too"
            if Need.OWN_LAYERS not in view.translator.features
            else "; z is computed from the run's x and the model's weights"
        )
        + (
            "."
            if found.error is None
            else f". act(z), computed from z, differs from the run by at most {found.error:.1e}."
        )
    )
    export_tab(view, "gated-neurons", call, *pictures)


def show_sharing(view: View) -> None:
    """Which query heads read the same keys and values, and what that saves."""
    _equations(
        r"\mathrm{head}_i = \mathrm{Attention}\big(QW^Q_i,\, KW^K_{g(i)},\, VW^V_{g(i)}\big)",
        r"g(i) = \lfloor i\, h_{kv} / h \rfloor",
        r"\text{cache} = L\,n\,h_{kv}\,(d_k + d_v) \cdot 4\ \text{bytes}",
        sources="Shazeer 2019, “Fast Transformer Decoding: One Write-Head is All You Need” (multi-query, h_kv = 1); "
        "Ainslie et al. 2023, “GQA: Training Generalized Multi-Query Transformer Models from Multi-Head Checkpoints” "
        "(grouped-query). In 2017: h_kv = h (Vaswani et al. 2017, section 3.2.2).",
    )
    attention, config = view.attention, view.translator.config
    if config.kv_heads == config.n_heads:
        _missing("gqa", "**This model is multi-head**, as in 2017: no query heads share keys and values.")
    call = Call(since.key_distances, attention)
    st.markdown(f"**Which query heads share keys and values**: {view.place.title.rpartition(',')[0]}")
    left, right = st.columns(2)
    with left:
        sharing_picture = _draw(
            charts.sharing_chart(attention.kv_head, view.head),
            key="since-sharing",
            title="Shared heads",
            alt="Which head of keys and values each query head reads",
        )
        shared = sorted({attention.kv_head.count(kv) for kv in attention.kv_head})
        st.caption(
            f"{attention.n_heads} query heads, {len(set(attention.kv_head))} of keys and values: "
            + (f"{shared[0]} query heads share each." if shared[0] > 1 else "each query head has its own.")
            + " Orange ring: the chosen head. In the map, 0 means that two query heads read the very same keys."
        )
    with right:
        keys_picture = _draw(
            charts.key_distance_map(call.result),
            key="since-keys",
            title="Keys compared",
            alt="Largest difference between the keys that two query heads read",
        )
    kind = view.kind if not attention.crosses else f"{view.trace.kind(view.kind).queries}_self"
    cache = Call(since.cache_bytes, view.trace, kind, config.max_len)
    found = cache.result
    own = view.trace.kind(kind).kv_heads
    names = {
        _scheme(heads, config.n_heads) + (" (this model)" if heads == own else ""): row
        for heads, row in zip(found["kv_heads"], found["bytes"], strict=True)
    }
    mine = next(name for name in names if name.endswith("(this model)"))
    st.markdown("**Bytes of keys and values over n**")
    cache_picture = _draw(
        charts.cache_chart(found["n"], names, mine, tuple(map(int, found["run"]))),
        key="since-cache",
        title="Bytes over n",
        alt="Bytes of the cached keys and values over the number of tokens, for three numbers of heads",
    )
    here, size = map(int, found["run"])
    what = "What a decoder keeps of the tokens so far, so that it need not compute them again at each step. "
    if kind == "encoder_self":
        what = "An encoder reads all tokens at once and keeps no cache; these are the keys and values of one pass. "
    st.caption(
        f"{what}This run: {_cache_product(view.trace, kind, here)}{size:,} bytes, counted in its own arrays. The "
        "other lines are not part of this model: the same formula with other numbers of heads."
        + (
            " Cross-attention also keeps the keys and values of the source."
            if config.family == "encoder_decoder"
            else ""
        )
    )
    export_tab(view, "shared-keys", {"keys": call, "cache": cache}, sharing_picture, keys_picture, cache_picture)


def _cache_product(trace: Trace, kind: str, tokens: int) -> str:
    """The formula of the cache in numbers, up to its "="; empty where the layers differ in size."""
    sizes = layer_sizes(trace, kind)
    if len(set(sizes)) > 1:
        return ""
    size = sizes[0]
    return f"{len(sizes)} layers · {tokens} tokens · {size.kv_heads} heads · ({size.d_k} + {size.d_v}) · 4 bytes = "


def _scheme(kv_heads: int, heads: int) -> str:
    name = {heads: "multi-head", 1: "multi-query"}.get(kv_heads, "grouped-query")
    return f"{name}: {kv_heads} of keys and values"


STUDY = {
    "part-2017": "2017",
    "part-pre_norm": "pre-norm",
    "part-rms_norm": "RMSNorm",
    "part-rope": "RoPE",
    "part-swiglu": "SwiGLU",
    "part-gqa": "grouped queries",
    "part-modern": "all of them",
}
"""by the names in since_2017.csv; the first is what the others are compared with"""


TWINS = {"everyday-lm-2017": "parts of 2017", "everyday-lm": "parts since"}
"""by the names in twins.csv; the first is what the other is compared with"""


def show_study(view: View) -> None:
    """What each part that came after 2017 buys a small language model, one switched over at a time."""
    study = read_study("since_2017")
    ends = {label: study[study["run"] == name].iloc[-1] for name, label in STUDY.items()}
    base = next(iter(ends.values()))
    st.markdown(
        f"**Seven language models** of width 128, 4 layers and 8 heads, {base['parameters'] / 1e6:.2f} M parameters "
        "within 1 %: the paper's parts (post-norm LayerNorm, sinusoids, ReLU, 8 heads of keys and values), then one "
        "later part at a time in place of the paper's (grouped queries: 8 query heads share 2 heads of keys and "
        "values), then all of them, without biases and with embeddings that are not scaled. The "
        f"same {base['tokens'] / 1e6:.1f} million tokens in the same order, the same learning rates, the pieces of "
        "everyday-lm."
    )
    figure = _draw_parts(study, STUDY, "parts", "seven language models")
    table = pd.DataFrame(
        {
            "changed": list(ends),
            "bits/byte": [end["dev_bits_per_byte"] for end in ends.values()],
            "vs. 2017": [end["dev_bits_per_byte"] / base["dev_bits_per_byte"] - 1 for end in ends.values()],
            "parameters": [int(end["parameters"]) for end in ends.values()],
        }
    )
    controls.table(table.assign(**{"vs. 2017": [f"{share:+.2%}" for share in table["vs. 2017"]]}), floats="%.4f")
    st.caption(
        "Bits per byte of a development text, lower is better; where SwiGLU or grouped queries change the number of "
        "parameters, the feed-forward width makes up for it. **One seed each**: how much another seed would change was "
        "not measured, so small differences decide nothing. "
        "Grouped queries are not meant to lower the loss: they make the cache of keys and "
        "values four times smaller here. RoPE: Su et al. 2021; SwiGLU: Shazeer 2020; RMSNorm: Zhang and Sennrich 2019; "
        "pre-norm: Xiong et al. 2020; grouped queries: Ainslie et al. 2023."
    )
    twins = _show_twins()
    export_tab(
        view,
        "parts-since-2017",
        {"parts": Call(tab.study_arrays, "since_2017"), "twins": Call(tab.study_arrays, "twins")},
        Picture("Parts", "parts", figure),
        Picture("Twins", "twins", twins),
        table=study,
    )


def _show_twins() -> object:
    """All of the parts at once, at the size of a checkpoint: everyday-lm beside a twin with the parts of 2017."""
    study = read_study("twins")
    old, new = (study[study["run"] == name].iloc[-1] for name in TWINS)
    st.markdown(
        f"**The same comparison at {new['parameters'] / 1e6:.1f} M parameters**: the first {int(new['step']):,} "
        "training steps of everyday-lm beside everyday-lm-2017, its twin of "
        f"{old['parameters'] / 1e6:.1f} M parameters with the paper's parts. Choose either as the checkpoint, under "
        "More in the sidebar."
    )
    figure = _draw_parts(study, TWINS, "twins", "everyday-lm and its twin of 2017")
    before, after = (run["dev_bits_per_byte"] for run in (old, new))
    st.caption(
        f"After {new['tokens'] / 1e6:.2f} million tokens: {before:.4f} bits per byte with the parts of 2017, "
        f"{after:.4f} with those since, {1 - after / before:.1%} less. The twin's steps and batch size are the same; "
        "it read the same texts in another order, without 112 of their 968,749 lines, and its learning rates are "
        f"{_rates_of_twins(study):.2g} of everyday-lm's, because with those its loss rose again during the warm-up. "
        "One seed each: other rates may suit the twin better."
    )
    return figure


def _rates_of_twins(study: pd.DataFrame) -> float:
    """The older twin's learning rate as a share of the newer one's, in the middle of the steps that both logged."""
    old, new = (study[study["run"] == name].set_index("step")["learning_rate"] for name in TWINS)
    both = (old / new).dropna()
    return float(both[both > 0].median())


def _draw_parts(study: pd.DataFrame, names: Mapping[str, str], key: str, alt: str) -> object:
    runs = {label: study[study["run"] == name] for name, label in names.items()}
    curves = {label: (run["tokens"].to_numpy(), run["dev_bits_per_byte"].to_numpy()) for label, run in runs.items()}
    figure = parts_chart(curves)
    chart(figure, key=key, alt=f"Bits per byte over the tokens read, {alt}")
    return figure
