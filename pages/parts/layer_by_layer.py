"""Layer by layer: the choice of stack, token and step, the leading figure, and one function per tab."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.analysis import residual_stream
from model.analysis import tab_arrays as tab
from model.analysis.residual_stream import NormSteps, StreamMeasures
from model.needs import Need
from model.network.config import TransformerConfig
from model.trace import Array, SubLayer, Trace
from pages.compute.view import View
from pages.widgets import controls
from pages.widgets.chart import chart, clicked_point
from pages.widgets.controls import choice, clamp, number, select, set_controls
from pages.widgets.export import export_tab
from pages.widgets.snippet import Call
from viz.charts.layer_by_layer import MEASURES, path_chart, similarity_map
from viz.heatmap import row_names, vector_strips
from viz.latex import block_equation, multiplied
from viz.theme import symmetric_range
from viz.tokens import numbered

STACKS = {"encoder": "Encoder", "decoder": "Decoder"}
PATH_CHART = "layers-path"
"""key of the chart whose points are tokens and steps"""


@dataclass(frozen=True)
class Shown:
    """One stack of the run, and the chosen token and step."""

    stack: str
    tokens: tuple[str, ...]
    rows: list[str]
    """labels of the tokens; in the decoder with what each row predicts"""
    path: StreamMeasures
    position: int
    step: int
    """0 is the input; step s is the residual stream after sub-layer s - 1"""

    @cached_property
    def measures(self) -> dict[str, Array]:
        """What the figure draws, by name."""
        return {name: getattr(self.path, name) for name in (*MEASURES, "added")}

    @property
    def place(self) -> tuple[int, int]:
        return self.position, self.step

    @property
    def step_name(self) -> str:
        return self.path.steps[self.step]


def choose(view: View) -> Shown:
    """Choose stack, token and step; values out of range are clamped or reset to the default."""
    notes = st.container()
    left, middle, right = st.columns([5, 8, 8])
    stacks = {name: STACKS[name] for name in view.trace.streams}
    stack = choice("Stack", stacks, "layers_stack", default=list(stacks)[-1], place=left) or list(stacks)[-1]
    stream = view.trace.streams[stack]
    tokens = stream.tokens.labels
    rows = row_names(tokens, stream.predicts.labels if stream.predicts else None)
    path = residual_stream.measure_stream(view.trace, stack)
    with middle:
        position = _select("Token", "layers_token", rows, min(1, len(rows) - 1), notes)
    with right:
        step = _select("Step", "layers_step", path.steps, len(path.steps) - 1, notes)
    return Shown(stack, tokens, rows, path, position, step)


def _select(label: str, key: str, names: Sequence[str], default: int, notes: DeltaGenerator) -> int:
    """An index chosen by its name; one that is out of range becomes the last."""
    state, asked = st.session_state, st.query_params.get(key)
    if key not in state and asked is not None and asked not in names:
        text = f"The link asks for a {label.lower()} that is not there; you see another."
        notes.info(text, icon=":material/info:")
    clamp(key, (0, len(names) - 1))
    options = range(len(names))
    chosen = select(label, options, key, default=default, format_func=lambda i: names[i])
    return default if chosen is None else chosen


def choose_clicked() -> None:
    """A click on a point or a cell of the figure chooses its token and step."""
    if point := clicked_point(PATH_CHART):
        set_controls(dict(zip(("layers_token", "layers_step"), point["customdata"][:2], strict=True)))


def show_path(shown: Shown) -> object:
    """Draw the leading figure and return it."""
    measure = choice(
        "The map of all tokens shows",
        list(MEASURES),
        "layers_measure",
        default="to_start",
        format_func=lambda name: MEASURES[name].title,
    )
    names = shown.rows, shown.tokens
    figure = path_chart(shown.measures, shown.path.steps, names, shown.place, measure or "to_start")
    chart(
        figure,
        key=PATH_CHART,
        on_select=choose_clicked,
        alt="Norms, shares and cosines of the chosen token after every sub-layer, and one measure of all tokens",
    )
    return figure


PLACEMENTS = {
    "post": (
        ", and a layer norm normalises the sum (post-norm).",
        r"x^{(s)} = \mathrm{Norm}\!\left(x^{(s-1)} + \mathrm{Sublayer}(x^{(s-1)})\right)",
    ),
    "pre": (
        "; this model normalises the input of each sub-layer (pre-norm), unlike the paper's.",
        r"x^{(s)} = x^{(s-1)} + \mathrm{Sublayer}(\mathrm{Norm}(x^{(s-1)}))",
    ),
    "sandwich": (
        "; this model normalises both the input and the output of each sub-layer, unlike the paper's.",
        r"x^{(s)} = x^{(s-1)} + \mathrm{Norm}(\mathrm{Sublayer}(\mathrm{Norm}(x^{(s-1)})))",
    ),
    "res-post": (
        "; this model normalises the output of each sub-layer alone, before the sum (res-post-norm), unlike the "
        "paper's.",
        r"x^{(s)} = x^{(s-1)} + \mathrm{Norm}(\mathrm{Sublayer}(x^{(s-1)}))",
    ),
    "parallel": (
        "; in this model both sub-layers of a layer read the same vector, the layer's input u, unlike in the paper's.",
        r"x^{(s)} = x^{(s-1)} + \mathrm{Sublayer}(\mathrm{Norm}(u))",
    ),
}
"""what is normalised, in words and as a formula"""


DROPOUT = (
    " **Dropout** acts in training alone, and in no picture here: on the output of each sub-layer, before it is added, "
    "and on the sum of embeddings and positions (section 5.4). On the attention weights this project's models have "
    "none."
)
"""of the paper, and of models of this project"""


def norm_of_model(trace: Trace) -> tuple[str, str]:
    """Where its norms stand, a key of PLACEMENTS, and which they are: LayerNorm or RMSNorm."""
    first = next((sublayer for sublayer in trace.sublayers if sublayer.norm), trace.sublayers[0])
    norm = first.norm or first.result_norm
    return first.placement, norm.kind if norm else "Norm"


@st.fragment
def show_inside(view: View, shown: Shown) -> None:
    """The vectors of one sub-layer at the chosen token, and the arithmetic of one dimension."""
    sublayer = _sublayer(view, shown)
    norm = residual_stream.layer_norm(sublayer, shown.position)
    vectors = _vectors(sublayer, shown.position)
    last = sublayer.out.shape[-1] - 1
    j = number(f"Dimension, 0 to {last}", (0, last), 0, "layers_dimension", width=200, in_link=False) or 0
    learned = {"γ (learned)": norm.gamma, "β (learned)": norm.beta} if norm else {}
    strips = vectors | {name: row for name, row in learned.items() if row is not None}
    drawn = vector_strips(strips, j, symmetric_range(*strips.values()), "dimension", 130 + 34 * len(strips))
    name = residual_stream.step_name(sublayer)
    chart(drawn, key="layers-strips", alt=f"The token's vectors in {name}, and what its norm learned")
    if norm:
        names = ("before", "out", "added") + (("normed",) if sublayer.norm else ())
        numbers = {name: getattr(sublayer, name)[shown.position, j] for name in names}
        numbers |= {"mean": norm.mean, "std": norm.std, "gamma": norm.gamma[j]}
        numbers |= {} if norm.beta is None else {"beta": norm.beta[j]}
        others = {"layer_input": sublayer.layer_input, "result": sublayer.result if sublayer.result_norm else None}
        numbers |= {name: rows[shown.position, j] for name, rows in others.items() if rows is not None}
        st.latex(multiplied(block_equation(numbers, j, sublayer.norm_first, norm.kind), sublayer.multiplier))
    doubles = {name: vector.astype(np.float64) for name, vector in vectors.items()}
    table = {
        "vector": list(doubles),
        "mean": [x.mean() for x in doubles.values()],
        "standard deviation": [x.std() for x in doubles.values()],
        "length": [np.linalg.norm(x) for x in doubles.values()],
    }
    controls.table(pd.DataFrame(table), floats=None)
    which = (
        f"Layer {sublayer.layer}, {sublayer.name} of the {shown.stack}. All {len(strips)} rows share one colour range."
    )
    st.caption(f"{which} {_compare_norm(norm, (sublayer.normed if sublayer.norm else sublayer.out)[shown.position])}")
    index = max(shown.step - 1, 0)
    calls = Call(tab.sublayer_arrays, view.trace, shown.stack, index, shown.position)
    export_tab(view, f"sub-layer-{shown.stack}-{index}", calls)


def _compare_norm(norm: NormSteps | None, shown: Array) -> str:
    """How far the model's own norm, (d_model,), is from the formula."""
    if norm is None:
        return "This sub-layer reads the residual stream as it is, without a norm."
    return (
        f"{'μ and σ are' if norm.kind == 'LayerNorm' else 'The root mean square is'} computed over the {len(shown)} "
        "dimensions of this one token, with ε under the root. Recomputed from the formula, the norm differs from the "
        f"model's by at most {np.abs(norm.normed - shown).max():.1e} in any dimension."
    )


def _vectors(sublayer: SubLayer, position: int) -> dict[str, Array]:
    """(d_model,) each, by name, in the order of computation."""
    norm = sublayer.norm.kind if sublayer.norm else "Norm"
    x, out, added, normed = (getattr(sublayer, name)[position] for name in ("before", "out", "added", "normed"))
    if sublayer.placement == "res-post":
        kind = sublayer.result_norm.kind if sublayer.result_norm else "Norm"
        first = {"x, input": x, "sub-layer": sublayer.result[position]}
        return {**first, f"{kind}(sub-layer)": out, f"x + {kind}(…)": added}
    if sublayer.result is not None and sublayer.result_norm is None:
        first = {"x, input": x} | ({f"{norm}(x)": normed} if sublayer.norm else {})
        product = f"{sublayer.multiplier:.4g} · sub-layer"
        return {**first, "sub-layer": sublayer.result[position], product: out, f"x + {product}": added}
    if sublayer.norm is None:
        return {"x, input": x, "sub-layer": out, "x + sub-layer": added}
    if sublayer.layer_input is not None:
        first = {"u, layer's input": sublayer.layer_input[position], f"{norm}(u)": normed}
        return {**first, "sub-layer": out, "x, input": x, "x + sub-layer": added}
    if sublayer.result is not None:
        first = {"x, input": x, f"{norm}(x)": normed, "sub-layer": sublayer.result[position]}
        return {**first, f"{norm}(sub-layer)": out, f"x + {norm}(…)": added}
    if sublayer.norm_first:
        return {"x, input": x, f"{norm}(x)": normed, "sub-layer": out, "x + sub-layer": added}
    return {"x, input": x, f"{sublayer.name}(x)": out, "their sum s": added, f"{norm}(s)": normed}


def show_similarity(view: View, shown: Shown) -> None:
    """Cosine similarity of every pair of tokens at the chosen step."""
    call = Call(tab.similarity_arrays, view.trace, shown.stack, shown.step)
    means = call.result["mean_cosine"]
    figure = similarity_map(call.result["cosines"], numbered(shown.tokens))
    chart(figure, key="layers-similarity", alt=f"Cosine of every two tokens at the step {shown.step_name}")
    if len(shown.rows) > 1:
        st.caption(
            f"At the step {shown.step_name}. Mean cosine similarity of two different tokens: "
            f"**{means[shown.step]:.3f}** here, {means[0]:.3f} at the input, {means[-1]:.3f} at the end; highest "
            f"{max(means):.3f} at {shown.path.steps[int(np.argmax(means))]}, lowest {min(means):.3f} at "
            f"{shown.path.steps[int(np.argmin(means))]}."
        )
    export_tab(view, "similarity", call)


def show_parameters(view: View) -> None:
    """Number of parameters of each block, and its share of the total."""
    config = view.translator.config
    parts, blocks = view.translator.parameters_by_part(), view.translator.parameters_by_block()
    total = sum(parts.values())
    names = ("self_attn", "cross_attn", "feed_forward", "norms")
    lines = [{"block": part, "together": parts[part]} for part in ("embeddings", "positions", "output") if parts[part]]
    lines += [
        {"block": f"{stack} layer {layer}", **block, "together": sum(block.values())}
        for (stack, layer), block in blocks.items()
    ]
    if rest := total - sum(line["together"] for line in lines):
        lines.append({"block": "last norms of the stacks", "together": rest})
    sums = {name: sum(line.get(name, 0) for line in lines) for name in (*names, "together")}
    table = pd.DataFrame([*lines, {"block": "whole model", **sums}])[["block", *names, "together"]]
    table["of the model"] = [f"{value / total:.1%}" for value in table["together"]]
    controls.table(table.convert_dtypes(), floats=None)
    shared = "The embedding matrix is also the output matrix and is counted once. " if config.tie_embeddings else ""
    learned = {
        "learned": "are learned",
        "relative bias": "are learned, as a bias for each distance",
        "unread": "could not be read",
    }
    positions = learned.get(config.positions, "are not learned")
    sizes = f"{_describe_matrices(config)} " if Need.OWN_LAYERS in view.translator.features else ""
    st.caption(f"{shared}{sizes}Positions {positions}.")
    export_tab(view, "parameters", Call(tab.parameter_arrays, view.translator), table=table)


def _describe_matrices(config: TransformerConfig) -> str:
    width, biases = config.kv_heads * config.d_k, config.biases
    attention = f"four matrices of d_model² = {config.d_model**2:,} weights{' and four biases' * biases}"
    if config.d_k != config.d_v:
        attention = (
            f"matrices of d_model · {config.n_heads * config.d_k} weights for queries, d_model · {width} for keys, "
            f"d_model · {config.kv_heads * config.d_v} for values and d_model² for the output"
        )
    elif width != config.d_model:
        attention = (
            f"two matrices of d_model² = {config.d_model**2:,} weights for queries and output, and two of d_model · "
            f"{width} = {config.d_model * width:,} for keys and values, which several query heads share"
        )
    forward = f"{'three' if config.gated else 'two'} of d_model · d_ff = {config.d_model * config.d_ff:,}"
    norm = "a layer norm γ and β" if config.norm_function == "layer_norm" and biases else "a norm γ"
    return f"An attention layer has {attention}; a feed-forward has {forward}{' and two biases' * biases}, and {norm}."


def _sublayer(view: View, shown: Shown) -> SubLayer:
    """The sub-layer that produces the chosen step; for the input, the one that reads it."""
    if shown.step == 0:
        st.caption("No sub-layer produces the input; showing the first one, which reads it.")
    return view.trace.streams[shown.stack].sublayers[max(shown.step - 1, 0)]
