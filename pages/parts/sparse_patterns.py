"""Efficient attention, tabs "Patterns" and "Sinks": keep a few cells of a trained model's attention."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis.sparse_patterns import (
    HeadWeights,
    Kept,
    Sinks,
    SizeSweep,
    head_weights,
    measure_kept,
    measure_sinks,
    pattern_sizes,
    score_changes,
    sink_changes,
    sweep_sizes,
)
from model.interventions import PatternMask
from model.needs import Need
from model.trace import Trace
from pages.compute.on_request import compute_on_request
from pages.compute.runs import rerun, run
from pages.compute.view import KINDS, View
from pages.frame.changes import why_unsupported
from pages.widgets import controls
from pages.widgets.chart import axis_labels, chart
from pages.widgets.export import Picture, export_tab
from pages.widgets.glossary import define
from pages.widgets.snippet import Call
from viz.charts import sparse_patterns as charts
from viz.html import word_diff
from viz.latex import signed
from viz.tokens import as_markdown, labels, numbered

WINDOW, STRIDED, GLOBAL, BLOCK = "window", "strided", "global", "block"
PATTERNS = {WINDOW: "Sliding window", STRIDED: "Strided", GLOBAL: "Global + window", BLOCK: "Blocks"}
SIZE = {WINDOW: "window w", STRIDED: "stride and window l", GLOBAL: "window w", BLOCK: "block b"}
KEPT = {
    WINDOW: r"|i - j| < w",
    STRIDED: r"|i - j| < l \;\lor\; (i - j) \bmod l = 0",
    GLOBAL: r"|i - j| < w \;\lor\; i \in G \;\lor\; j \in G",
    BLOCK: r"\lfloor i / b \rfloor = \lfloor j / b \rfloor",
}
SOURCE = {
    WINDOW: "Keys less than w positions away; in Beltagy et al. 2020, “Longformer”, section 3.1, w is the whole "
    "window, half of it on each side.",
    STRIDED: "Child et al. 2019, “Generating Long Sequences with Sparse Transformers”, section 4.3, with both of its "
    "patterns in every head: the last l keys and every l-th one.",
    GLOBAL: "Beltagy et al. 2020, “Longformer”, section 3.1: a window, and tokens G that see every key and that every "
    "query sees.",
    BLOCK: "Qiu et al. 2020, “Blockwise Self-Attention for Long Document Understanding”, the blocks on the diagonal.",
}
CLOSE = 0.1
"""nats"""
TINY = 1e-30
SINK = 0.5
"""share of a head's weight on one token that counts as a sink"""


def make_pattern(name: str, size: int, tokens: Sequence[int] = ()) -> PatternMask:
    """The pattern called `name` in every self-attention."""
    return {
        WINDOW: PatternMask(size),
        STRIDED: PatternMask(size, size),
        GLOBAL: PatternMask(size, global_tokens=tuple(tokens)),
        BLOCK: PatternMask(block=size),
    }[name]


def show_patterns(view: View) -> None:
    """A pattern on this run: what it keeps, what is then written, and log p over its size."""
    if view.trace.kind(view.kind).crosses:
        st.info(
            "A pattern is made of distances between positions of one text. Cross-attention joins two texts: choose "
            "a self-attention in the sidebar.",
            icon=":material/info:",
        )
        return
    name = controls.choice("Pattern", PATTERNS, "pattern")
    sizes, tokens = pattern_sizes(view.trace), ()
    left, right = st.columns([2, 3])
    size = controls.steps(
        SIZE[name][0].upper() + SIZE[name][1:], sizes, "pattern_size", default=min(3, sizes[-1]), place=left
    )
    if name == GLOBAL:
        positions = dict(enumerate(numbered(view.attention.key_tokens)))
        tokens = tuple(sorted(controls.several("Global tokens G", positions, (0,), "pattern_global", place=right)))
    st.latex(rf"\text{{key }} j \text{{ is kept for query }} i: \quad \allowbreak {KEPT[name]}")
    st.caption(f"{SOURCE[name]} A cell that the model masks stays masked, and each query keeps itself.")
    pattern = make_pattern(name, size, tokens)
    if problem := why_unsupported(view.translator, pattern):
        st.info(problem, icon=":material/info:")
        return
    changed = rerun(view.translator, view.trace, (*view.trace.interventions, pattern))
    kept = Call(measure_kept, view.trace, view.kind, pattern)
    place = (view.kind, view.layer, view.head)
    head = Call(head_weights, view.trace, changed, place, pattern)
    pictures = [_show_maps(view, head.result), _show_share(view, kept.result)]
    calls = {"head": head, "kept": kept}
    if Need.LOGITS not in view.translator.features:
        st.caption("This model has no output matrix, so there is no log p to compare.")
    else:
        _show_written(view, changed, pattern)
        sweep, figure = _show_sizes(view, name, tokens, size)
        if sweep:
            calls["sizes"] = sweep
            pictures.append(figure)
    export_tab(view, f"pattern-{name}-{size}", calls, *pictures)


def _show_maps(view: View, weights: HeadWeights) -> Picture:
    """The chosen head before and after."""
    maps = {
        "This run": (weights.before, weights.visible),
        "On kept cells": (weights.before, weights.kept),
        "With the pattern": (weights.after, weights.visible_after),
    }
    figure = charts.pattern_maps(axis_labels(view.attention), maps)
    alt = "The weights of the head, those on kept cells, and with the pattern"
    chart(figure, key="pattern-maps", alt=alt, roomy=True)
    share = weights.before[weights.kept].sum() / max(weights.before.sum(), TINY)
    st.caption(
        f"{view.place.title}. Rows are queries, columns keys; hatched: not attended to. {weights.kept.sum():,} of "
        f"{weights.visible.sum():,} visible cells are kept, with **{share:.1%}** of the head's weight. Right: the same "
        "target with the pattern in every self-attention; the weights of a row are shared among its kept keys, and q "
        "and k of later layers change too."
    )
    return Picture("Weights", "pattern-maps", figure)


def _show_share(view: View, kept: Kept) -> Picture:
    """The share of weight on kept cells by layer, and cells, multiply-adds and bytes."""
    layers = view.trace.kind(view.kind).layers
    left, right = st.columns([3, 2])
    place = view.layer, view.head
    figure = charts.layer_chart(layers, kept.share, place, "share of weight on kept cells")
    with left:
        chart(figure, key="pattern-share", alt="Share of each head's weight on kept cells, by layer")
    rows = {"all": "n × n", "visible": "visible in this run", "kept": "kept"}
    columns = {"cells": kept.cells, "multiply-adds": kept.multiply_adds, "scores, bytes": kept.bytes}
    with right:
        if kept.cells["visible"] == kept.cells["all"]:
            del rows["visible"]
        counts = {name: [values[row] for row in rows] for name, values in columns.items()}
        controls.table(pd.DataFrame({"": list(rows.values()), **counts}))
        means = kept.share.mean(axis=1)
        lowest, highest = int(means.argmin()), int(means.argmax())
        between = (
            f"The mean share is {means[0]:.1%}."
            if len(layers) == 1
            else f"The mean share lies between {means[lowest]:.1%} in layer {layers[lowest]} and {means[highest]:.1%} "
            f"in layer {layers[highest]}."
        )
        st.caption(
            f"{KINDS[view.kind]}, all layers and heads of this run. Multiply-adds of q kᵀ and pattern v; scores in "
            f"single precision. {between}"
        )
    return Picture("Share of weight", "pattern-share", figure)


def _writes(view: View) -> bool:
    """Whether the model writes or fills in anything in this run."""
    features = view.translator.features
    if Need.MASKED_MODEL in features:
        return view.translator.tokenizer.mask in view.trace.streams["encoder"].tokens.ids
    if Need.LANGUAGE_MODEL in features:
        return bool(view.request.continuation and view.request.continuation.max_new_tokens)
    return True


def _show_written(view: View, changed: Trace, pattern: PatternMask) -> None:
    """log p of the same target, and what the model writes with the pattern beside what it writes without."""
    before, after = view.trace.log_probability, changed.log_probability
    st.markdown(
        f"**The whole model with this pattern**: log p of the same target is {signed(after, '.3f')} nats, without "
        f"the pattern {signed(before, '.3f')}: a difference of **{signed(after - before, '+.3f')}**.",
        help=define("teacher-forced", "nats"),
    )
    if not _writes(view):
        st.caption("Nothing is written or filled in in this run, so there is no output to compare.")
        return
    plain = view.trace.interventions
    asked = replace(view.request, target=None, interventions=plain)
    own = run(view.translator, asked)
    new = run(view.translator, replace(asked, interventions=(*plain, pattern)))
    left, right = st.columns(2)
    for column, title, text in (
        (left, "Without the pattern", word_diff(own.translation, own.translation)),
        (right, "With the pattern", word_diff(own.translation, new.translation)),
    ):
        with column.container(border=True, height="stretch"):
            st.markdown(f"**{title}**")
            st.html(text)
    same = new.next_ids == own.next_ids
    st.caption("The same output." if same else "Struck out with −: removed. Underlined with +: added.")


def _show_sizes(view: View, name: str, tokens: Sequence[int], chosen: int) -> tuple[Call | None, Picture | None]:
    """log p of the same target in every size, on request."""
    patterns = tuple((size, make_pattern(name, size, tokens)) for size in pattern_sizes(view.trace))
    request = view.request
    writing = (("beam_size", request.beam_size), *(vars(request.continuation).items() if request.continuation else ()))
    work = (view.translator, view.trace, patterns, writing)
    st.markdown(f"**Every size**: the model scores the same target and writes again, for {len(patterns)} sizes.")
    sweep: SizeSweep | None = compute_on_request("Run every size", "pattern_sweep", work, lambda: _with_progress(*work))
    if sweep is None:
        return None, None
    figure = charts.size_chart(sweep.sizes, sweep.log_probability, sweep.same, (sweep.plain, CLOSE), chosen, SIZE[name])
    chart(figure, key="pattern-sizes", alt="log p of the same target over the size of the pattern")
    st.markdown(sizes_in_words(sweep, name, _writes(view)))
    st.caption(
        f"Dotted: log p without the pattern, {signed(sweep.plain, '.3f')} nats; shaded: within {CLOSE} nats of it. "
        "Smallest is of the sizes that were run. "
        "Vertical line: the size chosen above. The pattern is in every self-attention; the model was not trained with "
        "it."
    )
    return Call(sweep_sizes, *work, result=sweep), Picture("Every size", "pattern-sizes", figure)


def _with_progress(*work: Any) -> Any:
    for done, found in enumerate(sweep_sizes(*work), start=1):
        yield done / len(found.sizes), found


def sizes_in_words(sweep: SizeSweep, name: str, writes: bool) -> str:
    """The smallest size that changes almost nothing; of strides the one that keeps the fewest cells."""
    passing = np.flatnonzero(sweep.passing(CLOSE))
    output = "the output stays the same and " if writes else ""
    what = SIZE[name].rsplit(" ", 1)[0]
    if not len(passing):
        return (
            f"**In no size do both stay:** output and log p within {CLOSE} nats."
            if writes
            else (f"**In no size** does log p stay within {CLOSE} nats.")
        )
    best = passing[np.argmin(sweep.cells[passing])] if name == STRIDED else passing[0]
    size, share = sweep.sizes[best], sweep.cells[best] / sweep.visible
    rank = "size with the fewest cells" if name == STRIDED else f"smallest {what}"
    sentence = (
        f"**{size} is the {rank}** at which {output}log p is within {CLOSE} nats of the run without a pattern: "
        f"{signed(sweep.log_probability[best] - sweep.plain, '+.3f')} nats, with {sweep.cells[best]:,} of "
        f"{sweep.visible:,} visible cells of all self-attentions ({share:.0%})."
    )
    larger = [int(sweep.sizes[i]) for i in range(best + 1, len(sweep.sizes)) if i not in passing]
    if larger and name != STRIDED:
        sentence += f" Some larger sizes fail again: {', '.join(map(str, larger))}."
    if size == sweep.sizes[-1] and name != STRIDED:
        sentence += " It is the length of the text, so no cell of this run is left out."
    return sentence


def show_sinks(view: View) -> None:
    """Weight on the first token, and log p without it."""
    if Need.LANGUAGE_MODEL not in view.translator.features:
        st.info(
            "Attention sinks are about causal language models, whose first token is the one that every query sees. "
            "Choose a decoder-only checkpoint in the sidebar.",
            icon=":material/info:",
        )
        return
    tokens = view.attention.key_tokens
    if len(tokens) < 2:
        st.info("The text has one token, so no other query sees it. Type a longer one.", icon=":material/info:")
        return
    st.caption(
        "Xiao et al. 2024, “Efficient Streaming Language Models with Attention Sinks”: many heads put much of their "
        "weight on the first tokens whatever they are, and a sliding window fails once they leave it. A window that "
        "keeps them is StreamingLLM, which also renumbers positions; here every token keeps its own."
    )
    sinks = Call(measure_sinks, view.trace, view.kind)
    pictures = [_show_sink_weights(view, sinks.result)]
    window = controls.slider("Window w", (1, len(tokens)), min(4, len(tokens)), "sink_window")
    changes = sink_changes(len(tokens), window)
    runs = [rerun(view.translator, view.trace, (*view.trace.interventions, each)) for each in changes.values()]
    scores = np.array([each.log_probability for each in runs])
    plain = view.trace.log_probability
    differences = dict(zip(changes, scores - plain, strict=True))
    figure = charts.difference_bars(differences)
    chart(figure, key="sink-bars", alt="Difference of log p of the same text under each change")
    pictures.append(Picture("log p", "sink-bars", figure))
    st.markdown(_sinks_in_words(differences, window), help=define("teacher-forced", "nats"))
    st.caption(
        f"log p of the same text, {view.model_in_words}: {signed(plain, '.3f')} nats. Hidden: no later query "
        "attends to the token, in any layer or head. “First token” and “first 4” are global tokens beside the window."
    )
    scored = Call(score_changes, view.translator, view.trace, tuple(changes.values()), result=scores - plain)
    export_tab(view, "attention-sinks", {"sinks": sinks, "difference": scored}, *pictures)


def _show_sink_weights(view: View, sinks: Sinks) -> Picture:
    """Weight on the first token by layer and head."""
    layers = view.trace.kind(view.kind).layers
    title = "weight on the first token"
    figure = charts.layer_chart(layers, sinks.weight, (view.layer, view.head), title)
    chart(figure, key="sink-weights", alt="Weight that each head puts on the first token, by layer")
    layer, head = np.unravel_index(sinks.weight.argmax(), sinks.weight.shape)
    first = as_markdown(labels(view.attention.key_tokens[:1])[0])
    above = int((sinks.weight > SINK).sum())
    st.markdown(
        f"The first token is “{first}”. **{above} of {sinks.weight.size} heads** put "
        f"more than {SINK:.0%} of their weight on it; the most is {sinks.weight.max():.1%}, layer {layers[layer]}, "
        f"head {head}. Equal weights would put {sinks.even:.1%} there. Mean over the queries after it."
    )
    return Picture("Weight on the first token", "sink-weights", figure)


def _sinks_in_words(differences: Mapping[str, float], window: int) -> str:
    """What hiding the first token costs beside the second, and what keeping it beside a window gains."""
    first, second, alone, kept, four = differences.values()
    more = "more" if first < second else "no more"
    gain = kept - alone
    change = "raises" if gain > 0 else "does not raise"
    return (
        f"Hiding the first token changes log p by **{signed(first, '+.3f')}** nats, {more} of a loss than hiding the "
        f"second ({signed(second, '+.3f')}). A window of {window} alone changes it by {signed(alone, '+.3f')}; keeping "
        f"the first token beside it {change} log p ({signed(gain, '+.3f')}), the first four "
        f"{signed(four - alone, '+.3f')}."
    )
