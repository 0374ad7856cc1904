"""Positional encoding of a model that adds nothing to its embeddings: RoPE, biases of the scores, or none."""

from typing import NamedTuple

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis import run_positions as run
from model.analysis.since_2017 import rotate_pairs
from model.analysis.view_arrays import head_arrays
from model.needs import Need
from model.network.masks import alibi_slopes
from model.trace import Attention
from pages.compute.view import View
from pages.parts.word_order import show_order
from pages.widgets.chart import axis_labels, chart
from pages.widgets.controls import choice, number, select, slider, tabs
from pages.widgets.explain import explain
from pages.widgets.export import Picture, export_tab
from pages.widgets.snippet import Call
from viz.charts import run_positions as charts
from viz.charts.position_schemes import bias_map, comparison_maps, offset_chart
from viz.charts.positional_encoding import stacked_maps
from viz.heatmap import cells_table
from viz.theme import symmetric_range

TABLES = {"cos": "Cosine", "sin": "Sine"}
LONGEST_TABLE = 512
"""positions; more rows than that are thinner than a pixel"""
ROUNDING = 1e-4
"""largest relative difference that counts as rounding in single precision"""
SOURCES = {
    "rope": "Su et al. 2021, “RoFormer: Enhanced Transformer with Rotary Position Embedding”, sections 3.2 and 3.4.",
    "alibi": "Press et al. 2022, “Train Short, Test Long: Attention with Linear Biases Enables Input Length "
    "Extrapolation”, section 3.",
    "relative bias": "Raffel et al. 2020, “Exploring the Limits of Transfer Learning with a Unified Text-to-Text "
    "Transformer”, section 2.1.",
}


class Shown(NamedTuple):
    """What the page exports."""

    call: Call
    table: pd.DataFrame
    picture: Picture


def show_scheme(view: View) -> Shown:
    """The positions of a model that adds none to its embeddings, by what its attention does instead."""
    for field, show in (("rotary", _show_rope), ("bias", _show_bias)):
        attention = run.attention_with(view.trace, view.attention, field)
        if attention is not None:
            if attention is not view.attention:
                st.info(
                    "The attention chosen in the sidebar uses no positions itself. "
                    f"Shown instead: {view.trace.kind(attention.kind).title.lower()}, layer {attention.layer}.",
                    icon=":material/info:",
                )
            return show(view, attention, min(view.head, attention.n_heads - 1))
    return _show_none(view)


def show_reordered(view: View) -> None:
    """The same words in another order, through a model of one stack."""
    (stream,) = view.trace.streams.values()
    st.markdown(
        "Attention treats its keys as a **set**. Shuffle the words and run the model again: only positions, and the "
        "causal mask where there is one, can tell the two orders apart."
    )
    seed = number("Seed", (0, 9999), 1, "pe_seed")
    if len(run.word_positions(view.trace)) < 2:
        st.info("A single word has only one order. Type a longer text.")
        return
    call = Call(run.reorder_words, view.translator, view.trace, seed)
    found = call.result
    st.text("Other order: " + "".join(stream.tokens.labels[i] for i in found.order).replace("▁", " "))
    chart(
        charts.order_bars(stream.tokens.labels, found.logits_change),
        key="pe-order",
        alt="How much the logits of each token change when the words change places",
    )
    largest, size = found.logits_change.max(), np.abs(view.trace.logits).max()
    same = largest <= 1e-4 * size
    st.markdown(
        f"Largest change of a logit: **{largest:.3g}**, with logits up to {size:.3g}. "
        + ("That is rounding: the model cannot tell the two orders apart." if same else "The model reads the order.")
    )
    if view.attention.causal and view.translator.config.positions == "none" and not same:
        st.caption(
            "Without positions the causal mask alone tells the order: each token sees a different set of earlier ones "
            "(Haviv et al. 2022, “Transformer Language Models without Positional Encodings Still Learn Positional "
            "Information”)."
        )
    export_tab(view, "word-order", call)


def _show_rope(view: View, attention: Attention, head: int) -> Shown:
    rotary, length = attention.rotary, len(attention.key_tokens)
    call = Call(run.rotated_head, view.trace, attention.kind, attention.layer, head)
    found = call.result
    left, right = st.columns([3, 1])
    most = max(min(view.translator.config.max_len, LONGEST_TABLE), length, 3)
    rows = slider("Positions", (2, most), min(64, most), "positions", place=left)
    name = choice("Show", TABLES, "pe_angle", place=right)
    values = getattr(run.extend_angles(rotary, np.arange(rows)), name)
    used = min(rows, length)
    values[:used] = getattr(rotary, name)[:used]
    figure = charts.angle_map(values, found.wavelength, name, length)
    chart(figure, key="pe-angles", alt=f"Heat map of the {TABLES[name].lower()} of RoPE's angles by position and pair")
    explain(
        f"**RoPE** adds nothing to the embeddings. It rotates pair i of the dimensions of q "
        f"and k by the angle m θᵢ, where m is the position; d_k = {attention.d_k}, {len(found.wavelength)} pairs. "
        "Rows of your text are the run's own numbers; rows below it continue them with the same θᵢ.",
        r"\tilde q_m = R_m\, q_m, \qquad \tilde k_n = R_n\, k_n, \qquad "
        r"\tilde q_m^{\top} \tilde k_n = q_m^{\top} R_{n-m}\, k_n, \qquad \theta_i = b^{-2i/d_k}",
    )
    st.caption(SOURCES["rope"])
    views = {
        "Rotation of q and k": lambda: _show_rotation(view, attention, head, call),
        "Distance": lambda: _show_distance(view, attention, head),
        "Wavelengths": lambda: _show_wavelengths(view, length, call),
    }
    tabs(views | _order_tab(view), "part")
    table = pd.DataFrame(values, columns=[f"{name} {i}" for i in range(values.shape[1])]).rename_axis("position")
    return Shown(call, table.reset_index(), Picture("The angles", "pe-angles", figure))


def _show_rotation(view: View, attention: Attention, head: int, call: Call) -> None:
    found = call.result
    maps = {"q before": found.q_before, "q rotated": found.q, "k before": found.k_before, "k rotated": found.k}
    limit = symmetric_range(*maps.values())[1]
    chart(
        stacked_maps(maps, attention.key_tokens),
        key="pe-rotated",
        alt="Queries and keys of the head before the rotation and after it",
    )
    size = max(np.abs(found.q).max(), np.abs(found.k).max())
    st.caption(
        f"Layer {attention.layer}, head {head}. All maps share one range, ±{limit:.3g}. Repeated here with the "
        "run's angles, the rotation differs from "
        f"the run's q and k by at most {found.rotation_error:.1e}, with values up to {size:.3g}."
    )
    export_tab(view, "rotation", call)


def _show_distance(view: View, attention: Attention, head: int) -> None:
    rows, keys = axis_labels(attention)
    left, right = st.columns(2)
    m = select("Query", dict(enumerate(rows)), "pe_query", default=len(rows) - 1, place=left, in_link=False)
    n = select("Key", dict(enumerate(keys)), "pe_key", default=min(1, len(keys) - 1), place=right, in_link=False)
    moved = Call(rotate_pairs, attention, head, m, n)
    found = moved.result
    figure = offset_chart(found.offsets, found.scores, found.unrotated_score, n - m)
    chart(
        figure,
        key="pe-rotary-offsets",
        alt="The score of one query and one key of the run at every offset",
    )
    shift = slider("Shift every position by s", (0, 512), 100, "pe_shift")
    scores = attention.scores[head]
    size = np.abs(scores).max()
    error = np.abs(run.shifted_scores(attention, head, shift) - scores).max()
    st.markdown(
        f"**{_depends('score', error <= ROUNDING * size)}** With all positions shifted by {shift}, the run's q and k "
        f"before the rotation give {scores.size} scores that differ from the run's by at most **{error:.1e}**, with "
        f"scores up to {size:.3g}."
    )
    st.caption(
        "The curve keeps the contents of the query and the key and moves the key. Positions beyond the text use the "
        "angle per position measured in the run."
    )
    export_tab(view, "score-over-distance", moved, Picture("Score over distance", "pe-rotary-offsets", figure))


def _show_wavelengths(view: View, length: int, call: Call) -> None:
    found = call.result
    figure = charts.pair_wavelengths(found.wavelength, length)
    alt = "Wavelength of each pair of dimensions that RoPE rotates"
    chart(figure, key="pe-rope-wavelengths", alt=alt)
    slow = int((found.wavelength > length).sum())
    st.caption(
        "A wavelength is 2π over the angle between positions 0 and 1. "
        f"{slow} of the {len(found.wavelength)} pairs do not complete one turn within the {length} positions here."
    )
    export_tab(view, "wavelengths", call, Picture("Wavelengths", "pe-rope-wavelengths", figure))


def _show_bias(view: View, attention: Attention, head: int) -> Shown:
    call = Call(run.biased_head, view.trace, attention.kind, attention.layer, head)
    found = call.result
    linear = found.misfit <= 1e-4 * max(1.0, float(np.abs(found.lowest).max()))
    figure = charts.bias_by_offset(found.offsets, found.highest, head)
    chart(figure, key="pe-bias", alt="What each head adds to a score at each offset")
    if linear:
        slopes = ", ".join(f"{slope:.3g}" for slope in found.slopes)
        explain(
            f"**ALiBi** adds nothing to the embeddings: it lowers each scaled score by the head's slope times the "
            f"distance. Slopes of heads 0 to {len(found.slopes) - 1}, measured in this run: {slopes}.",
            r"\mathrm{softmax}\!\left(\text{score}_{ij} - m_h\,|i-j|\right)" + _papers_slopes(found.slopes),
        )
        st.caption(SOURCES["alibi"])
    else:
        explain(
            "This model adds nothing to its embeddings. Each head adds a **learned bias** to its scores, chosen by "
            "the offset of key and query.",
            r"\mathrm{softmax}\!\left(\text{score}_{ij} + b_{h,\,j-i}\right)",
        )
        st.caption(SOURCES["relative bias"])
    views = {
        "Scores": lambda: _show_biased_scores(view, attention, head, call),
        "Distance": lambda: _show_bias_spread(found),
    }
    tabs(views | _order_tab(view), "part")
    table = pd.DataFrame(found.highest.T, columns=[f"head {i}" for i in range(len(found.slopes))])
    table.insert(0, "offset", found.offsets)
    return Shown(call, table, Picture("The bias", "pe-bias", figure))


def _papers_slopes(slopes: np.ndarray) -> str:
    """The paper's formula for the slopes, where they follow it."""
    follow = np.allclose(slopes, alibi_slopes(len(slopes)).numpy(), rtol=1e-3)
    return rf", \qquad m_h = 2^{{-8(h+1)/n}},\quad n = {len(slopes)}" if follow else ""


def _show_biased_scores(view: View, attention: Attention, head: int, call: Call) -> None:
    found, mask = call.result, attention.mask[head]
    limit = symmetric_range(found.without[mask], found.pre_softmax[mask], found.bias[mask])[1]
    chart(
        comparison_maps(
            axis_labels(attention),
            mask,
            {"Scores without the bias": found.without, "Scores of the run, with it": found.pre_softmax},
            {"Weights without the bias": found.pattern_without, "Attention weights of the run": found.pattern},
            limit,
        ),
        key="pe-bias-scores",
        alt="Scores and attention weights of the head, without its bias and with it",
        roomy=True,
    )
    st.caption(
        f"Layer {attention.layer}, head {head}. Scores and bias share one range, ±{limit:.3g}. The left weights are "
        "recomputed from this run's scores; the run itself had the bias."
    )
    chart(bias_map(np.where(mask, found.bias, np.nan), limit), key="pe-bias-map", alt="The bias of this head")
    export_tab(view, "bias", call)


def _show_bias_spread(found: run.BiasedHead) -> None:
    spread = float((found.highest - found.lowest).max())
    only = spread <= ROUNDING * np.abs(found.bias).max()
    st.markdown(
        f"**{_depends('bias', only)}** Over all heads and all pairs of positions with the same offset it "
        f"differs by at most **{spread:.1e}** in this run."
    )
    frame = pd.DataFrame({"head": range(len(found.slopes)), "slope m, measured": found.slopes})
    st.dataframe(frame, hide_index=True)


def _show_none(view: View) -> Shown:
    attention, head = view.attention, view.head
    call = Call(head_arrays, attention, head, ("scaled", "mask", "pattern"))
    if view.translator.config.positions != "none":
        st.info("How this model encodes positions could not be read.", icon=":material/info:")
    else:
        st.markdown(
            "This model has no positional encoding: nothing is added to its embeddings for their positions, "
            "no q or k is rotated, and no bias is added to the scores. "
            + (
                "The causal mask alone tells its tokens apart by order."
                if attention.causal
                else "Its self-attention without a mask cannot know the order of the tokens."
            )
        )
    rows, keys = axis_labels(attention)
    mask = attention.mask[head]
    figure = comparison_maps(
        (rows, keys),
        mask,
        {},
        {
            "Attention weights": attention.pattern[head],
            "Equal weights": mask / np.maximum(mask.sum(-1, keepdims=True), 1),
        },
    )
    chart(figure, key="pe-none", alt="Attention weights of the head beside equal weights", roomy=True)
    if found := _order_tab(view):
        tabs(found, "part")
    table = cells_table(rows, keys, {"weight": attention.pattern[head]})
    return Shown(call, table, Picture("Attention weights", "pe-none", figure))


def _depends(what: str, only: bool) -> str:
    return f"The {what} depends on the distance only." if only else f"The {what} depends on more than the distance."


def _order_tab(view: View) -> dict:
    if len(view.trace.streams) == 1:
        return {"Word order": lambda: show_reordered(view)}
    return {"Word order": lambda: show_order(view)} if Need.OWN_LAYERS in view.translator.features else {}
