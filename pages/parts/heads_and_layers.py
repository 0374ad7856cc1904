"""Heads and layers: which numbers are shown, the mosaic of all heads, and the opened head as heat map and lines."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import streamlit as st

from model.analysis.head_tables import HeadTables, Look, head_tables, overview
from model.analysis.view_arrays import table_arrays
from model.checkpoints.store import shown_name
from model.trace import Array, Trace
from pages.compute.cache import shared_result
from pages.compute.view import KINDS, View
from pages.widgets.canvas import draw, mosaic_picture
from pages.widgets.chart import chart
from pages.widgets.controls import choice, set_controls, toggle
from pages.widgets.explain import explain
from pages.widgets.glossary import define
from pages.widgets.snippet import Call
from viz.canvas.lines import MOST_HEADS, lines
from viz.canvas.mosaic import Group, mosaic
from viz.charts.heads_and_layers import decoder_names, group_texts, head_map, word_names
from viz.drawing import Drawing
from viz.latex import scaled_scores

VALUES = {"weights": "Attention weights", "norms": "Norm-weighted", "rollout": "Rollout"}
MEASURES = {"weights": "attention weight", "norms": "‖α v W_O‖", "rollout": "rollout"}
MOSAIC, MAP, HEAD_LINES = "heads-mosaic", "heads-map", "heads-lines"
OPENED = "opened-head"
"""key of the container with map and lines, which a click on the mosaic scrolls into view"""
LINES = {"head": "This head", "layer": "All heads of the layer"}


@dataclass(frozen=True)
class Shown:
    """The tables on the page, and which of them is opened."""

    view: View
    groups: tuple[HeadTables, ...]
    """one per kind in the mosaic, pooled if the text is long"""
    tables: HeadTables
    """those of the chosen layer"""
    rows: list[str]
    """names of its queries"""
    keys: list[str]
    high: float
    """upper end of the colour range, which all groups share"""

    @property
    def look(self) -> Look:
        return self.tables.look

    @property
    def column(self) -> int:
        """Index of the opened table in its layer; rollout has one per layer."""
        return 0 if self.look.values == "rollout" else self.view.head

    @property
    def values(self) -> Array:
        return self.tables.values[0, self.column]

    @property
    def mask(self) -> Array:
        return self.tables.mask[0, self.column]

    @property
    def removed(self) -> Array:
        """(layers, heads, query): share of each row on hidden keys."""
        return next(group.removed for group in self.groups if group.kind == self.view.kind)

    @property
    def called(self) -> str:
        return MEASURES[self.look.values]

    @property
    def place(self) -> str:
        layer = self.view.layer
        return f"layers 0 to {layer}" if self.look.values == "rollout" else f"layer {layer}, head {self.view.head}"

    @property
    def title(self) -> str:
        return f"{self.called}, {KINDS[self.view.kind].lower()}, {self.place}"


def choose_look(view: View) -> Shown:
    """Choose the numbers, words or tokens, with or without special tokens, one kind of attention or all three."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        values = choice("Numbers", VALUES, "heads_values", help=define("norm-weighted", "rollout"))
        every = toggle("All kinds", "heads_kinds", width="content")
        words = toggle("Whole words", "heads_words", help=_WORDS, width="content")
        hide = toggle("Hide special tokens", "heads_hide", width="content")
        again = toggle("Renormalise", "heads_again", disabled=not hide, help=define("renormalise"), width="content")
    asked = Look(values, words, hide, hide and again)
    return _shown(view, _possible(view, asked), every)


_WORDS = "Tokens are merged into words: weights are summed over a word's keys and averaged over its queries."


def _possible(view: View, look: Look) -> Look:
    """Replace what this attention cannot show, and say why."""
    if look.values == "rollout" and (view.attention.crosses or view.attention.causal):
        st.info(_NO_ROLLOUT[view.kind], icon=":material/info:")
        look = replace(look, values="weights")
    if look.hide and view.attention.causal and len(view.trace.tgt_tokens) == 1:
        st.info("Here the decoder reads only <s>: hiding it would leave nothing, so it stays.")
        look = replace(look, hide=False, renormalise=False)
    return look


_NO_ROLLOUT = {
    "decoder_self": "Rollout is defined for the encoder's self-attention only. Every decoder layer also reads the "
    "source through cross-attention, which a product of self-attention weights would ignore. Showing attention "
    "weights instead.",
    "cross": "Rollout is defined for the encoder's self-attention only. The rows and columns of cross-attention are "
    "tokens of two different sentences, so one layer's weights cannot be multiplied by the next one's. Showing "
    "attention weights instead.",
}


def _shown(view: View, look: Look, every: bool) -> Shown:
    kinds = [kind.name for kind in view.trace.kinds] if every and look.values != "rollout" else [view.kind]
    if look.hide and len(view.trace.tgt_tokens) == 1:
        kinds = [kind for kind in kinds if not view.trace.kind(kind).causal or kind == view.kind]
    groups = tuple(_overview(view.trace, kind, look) for kind in kinds)
    tables = head_tables(view.trace, view.kind, look, [view.layer])
    attention = view.attention
    rows = word_names(attention.query_tokens, tables.queries)
    if attention.predicts:
        rows = decoder_names(attention.query_tokens, attention.predicts.labels, tables.queries)
    high = 1.0
    if look.values == "norms":
        high = max(float(np.nanmax(group.values, initial=0)) for group in groups) or 1.0
    return Shown(view, groups, tables, rows, word_names(attention.key_tokens, tables.keys), high)


@shared_result("Reading all heads …")
def _overview(trace: Trace, kind: str, look: Look) -> HeadTables:
    return overview(trace, kind, look)


def show_mosaic(shown: Shown) -> Drawing:
    """Draw every head of every layer in one picture; a click opens one."""
    view, trace = shown.view, shown.view.trace
    title = f"{shown_name(trace.checkpoint)} {trace.checkpoint_hash[:8]}, {VALUES[shown.look.values].lower()}"
    groups = [_group(view, tables) for tables in shown.groups]
    chosen = (view.kind, view.layer, shown.column)
    drawing = mosaic(groups, chosen, high=shown.high, measure=shown.called, title=title, opens=f"st-key-{OPENED}")
    return mosaic_picture(drawing, MOSAIC, _choose_layer if shown.look.values == "rollout" else _choose)


def _group(view: View, tables: HeadTables) -> Group:
    queries, keys = plain_labels(view, tables)
    title = "Rollout, up to each layer" if tables.look.values == "rollout" else KINDS[tables.kind]
    if tables.pool > 1:
        queries, keys = (numbered_spans(texts, tables.pool) for texts in (queries, keys))
    averaged = tables.look.values == "rollout"
    return Group(tables.kind, title, tables.values, queries, keys, tables.mask, averaged, tables.pool)


def numbered_spans(texts: list[str], size: int) -> list[str]:
    """Names of rows that were taken together, such as "28 and the 3 after: the dog runs through"."""
    return [f"{i * size} and the {size - 1} after: {text}" for i, text in enumerate(texts)]


def plain_labels(view: View, tables: HeadTables) -> tuple[list[str], list[str]]:
    """Labels of queries and keys without positions, for pictures that add those themselves."""
    attention = view.trace.attention(tables.kind, view.trace.kind(tables.kind).layers[0])
    queries = group_texts(attention.query_tokens, tables.queries)
    if attention.predicts:
        predicted = group_texts(attention.predicts.labels, tables.queries)
        queries = [f"reads {read}, predicts {token}" for read, token in zip(queries, predicted, strict=True)]
    return queries, group_texts(attention.key_tokens, tables.keys)


def _choose(kind: str, layer: int, head: int) -> None:
    """Set the sidebar's widgets to the clicked head, before the page reruns."""
    set_controls({"kind": kind, "layer": layer, "head": head})


def _choose_layer(_kind: str, layer: int, _head: int) -> None:
    set_controls({"layer": layer})


def show_head(shown: Shown) -> tuple[Any, Drawing]:
    """Draw the opened head as a heat map and as lines; returns both."""
    figure = head_map(shown.rows, shown.keys, shown.values, shown.mask, shown.called, shown.high)
    chart(figure, key=MAP, alt=f"{shown.title}: rows are queries, columns keys")
    return figure, _show_lines(shown)


def _show_lines(shown: Shown) -> Drawing:
    """Draw the lines of the opened head or of all heads in its layer; buttons in the picture switch each on and off."""
    view, tables = shown.view, shown.tables
    layer = tables.values[0]
    start = shown.column // MOST_HEADS * MOST_HEADS
    heads = list(range(start, min(start + MOST_HEADS, len(layer))))
    drawn = [shown.column]
    if len(heads) > 1:
        which = choice("Lines of", LINES, "heads_lines")
        drawn = heads if which == "layer" else drawn
    tokens = view.attention.query_tokens
    drawing = lines(
        layer[heads],
        group_texts(tokens, tables.queries),
        group_texts(view.attention.key_tokens, tables.keys),
        heads=heads,
        shown=drawn,
        allowed=tables.mask[0][heads],
        predicts=group_texts(predicts.labels, tables.queries) if (predicts := view.attention.predicts) else None,
        high=shown.high,
        measure=shown.called,
        title=shown.title,
    )
    return draw(drawing, HEAD_LINES)


def arrays(shown: Shown) -> Call:
    """What computes the exported tables."""
    return Call(table_arrays, shown.view.trace, shown.view.kind, shown.look, shown.view.layer, shown.column)


def describe_removed(shown: Shown) -> str:
    """How much weight hiding special tokens removed from the opened head, and what its rows sum to now."""
    view = shown.view
    hidden = [token for token in ("<s>", "</s>") if token in view.attention.key_tokens]
    if not shown.look.hide or not hidden:
        return ""
    removed = shown.removed[view.layer, shown.column]
    text = f"Hidden: {hidden[0]}. It received {removed.mean():.2%} of a row on average"
    text += f", at most {removed.max():.2%}, in row “{shown.rows[int(removed.argmax())]}”. "
    return text + _rows_now(shown)


def _rows_now(shown: Shown) -> str:
    rows = "" if shown.view.attention.crosses else " Its own row is hidden as well."
    if not shown.look.renormalise:
        return f"Rows were not renormalised, so they no longer sum to 1.{rows}"
    empty = int(np.isnan(shown.values).all(axis=-1).sum())
    blank = f" {empty} of them had no weight left and are blank." if empty else ""
    return f"Rows were renormalised to their original sum.{blank}{rows}"


def explain_numbers(shown: Shown) -> None:
    """Explain the numbers: their formula, one equation per line."""
    text, latex, section = _EXPLAINED[shown.look.values]
    scores = scaled_scores(shown.view.attention, r"Q_h K_h^{\top}", "B_h")
    if shown.view.attention.sink is not None:
        scores += r"\;\big|\; s_h"
        text = text.replace(
            "sum to 1.", "sum to less than 1: a sink, a learned number s that is no key, takes a share."
        )
    latex = latex.replace("SCORES", scores)
    if shown.look.values == "norms" and shown.look.words:
        text += " A word's value is the sum of its tokens' lengths, which can exceed the length of their sum."
    explain(text, latex, section)


_EXPLAINED = {
    "weights": (
        "Each row of a square is one query, and its weights over the keys sum to 1. “Multi-head attention allows the "
        "model to jointly attend to information from different representation subspaces at different positions”, so "
        "every head has a square of its own. A large weight shows where a head reads, not how much the value it read "
        "there contributes: for that, see “Norm-weighted”.",
        r"\alpha^{h} = \mathrm{softmax}\!\left(SCORES\right)",
        "3.2",
    ),
    "norms": (
        "$\\alpha_{ij}$ is the attention weight, $f(x_j)$ the vector that key j contributes through this head's "
        "$W_V$ and its rows of $W_O$. The norm of their product is how much key j actually adds to row i: a key may "
        "have most of the weight and add little, because its value vector is short. After Kobayashi et al. 2020, "
        "“Attention is Not Only a Weight”. Colours run from 0 to the largest norm in the mosaic; rows need not sum "
        "to 1.",
        r"\begin{aligned} f(x_j) &= (x_j W_V^h + b_V^h)\, W_O^h \\"
        r"\text{shown} &= \lVert \alpha_{ij}\, f(x_j) \rVert \\"
        r"\mathrm{out}_i &= \textstyle\sum_h \sum_j \alpha^h_{ij}\, f^h(x_j) + b_O \end{aligned}",
        "3.2.2",
    ),
    "rollout": (
        "How much of each input token reaches each position if all mixing were done by attention weights. Each layer "
        "counts as half identity, for the residual connection, plus half the mean of its heads' weights. Rows sum to "
        "1. Values, W_O, norms and feed-forward layers are left out. After Abnar & Zuidema 2020, “Quantifying "
        "Attention Flow in Transformers”; one square per layer, because the heads are averaged.",
        r"\begin{aligned} A_l &= \tfrac1H \textstyle\sum_h \alpha^{l,h} \\ \bar A_l &= 0.5\, A_l + 0.5\, I \\"
        r"\tilde A_l &= \bar A_l\, \tilde A_{l-1}, \qquad \tilde A_0 = \bar A_0 \end{aligned}",
        None,
    ),
}
