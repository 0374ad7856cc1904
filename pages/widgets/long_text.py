"""Efficient attention, tab "Long text": a run on up to 4,096 tokens, seen from afar and from near.

It is no view, because its map of a head has a state of its own: what was zoomed into and which query was clicked belong
to one run and head, and only the map is drawn again when they change, not the other pictures of thousands of tokens.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis import long_run as long
from model.analysis import streaming
from model.analysis.long_run import LongRun, Opened, Place
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.store import shown_name
from model.trace import Array
from pages.compute.cache import shared_result
from pages.compute.on_request import compute_on_request
from pages.compute.view import KINDS, View
from pages.widgets import controls
from pages.widgets.canvas import draw, mosaic_picture
from pages.widgets.chart import chart
from pages.widgets.explain import explain
from pages.widgets.export import Picture, export_tab
from pages.widgets.snippet import Call
from viz.canvas.lines import lines
from viz.canvas.long_map import Look, long_map
from viz.canvas.mosaic import Group, mosaic
from viz.charts.heads_and_layers import group_texts, head_map, numbered_spans
from viz.drawing import Drawing
from viz.figure import StableFigure
from viz.forms import Line, Lines, Mark
from viz.theme import OKABE_ITO
from viz.tokens import as_markdown, labels

HEADS, HEAD, MAP, LINES, SURPRISE = "long-heads", "long-head", "long-window-map", "long-window-lines", "long-surprise"
STREAM, LOST = "long-streaming", 0.2
"""a loss in bits that is worth a sentence"""
LOOK = "long-look"
"""of the session: what of the head is looked at"""
LISTED = 8
"""keys of a query, those with the largest weights"""
WINDOWS = {16: "16", 32: "32", 64: "64", 128: "128"}
BEFORE, AFTER = "‹ before", "after ›"


def show_long_text(view: View) -> None:
    """All heads of a long run, one of them to zoom into, and a window of the text with what lies outside it."""
    if reason := long.why_no_long_run(view.translator):
        st.info(reason, icon=":material/info:")
        return
    text = _choose_text(view)
    run = _run(view.translator, text)
    _describe(view, run)
    overview = _show_all_heads(view, text)
    _describe_sinks(view, text)
    place = view.kind, view.layer
    st.markdown(f"**{view.place.title}.** Drag to move, zoom with the buttons, a double click, or Ctrl and the wheel.")
    _show_head(view, text)
    window, tau = _choose_window(run)
    opened = long.open_window(run, place, view.head, window, tau)
    maps = _show_window(view, run, opened, window)
    _show_row(view, run, window, tau)
    pictures = [Picture("All heads", HEADS, overview), *maps]
    if len(run.log_probabilities):
        pictures.append(_show_surprise(run))
    call = Call(long.long_arrays, view.translator, text, *place, view.head, window, tau)
    export_tab(view, f"long-text-{view.place.slug}", call, *pictures)
    _show_streaming(view, text, run)


def _choose_text(view: View) -> str:
    """What was typed, or the checkpoint's long example."""
    try:
        example = long.example_text(view.translator)
    except ValueError:
        return view.source
    helped = (
        f"The {len(example.split()):,} words of the development sentences that show a head of this model best, one "
        "after the other. Without it: the text in the sidebar."
    )
    return example if controls.toggle("A long example instead of my text", "long_example", help=helped) else view.source


def _describe(view: View, run: LongRun) -> None:
    limit = long.most_tokens(view.translator)
    squares = sum(len(run.q[place]) for place in run.q) * len(run) ** 2 * 4
    sentence = (
        f"**{len(run):,} tokens** in one run. The queries and keys of all heads take {run.bytes / 1e6:,.1f} MB; their "
        f"weights would take {squares / 1e6:,.1f} MB, so they are computed where you look."
    )
    if len(run) >= limit:
        sentence += f" The text is longer: the run ends after {limit:,} tokens."
    if len(run) > run.positions:
        sentence += (
            f" The model was built for {run.positions:,} positions; beyond them its encoding of positions simply goes "
            "on, to distances that it never saw in training."
        )
    st.markdown(sentence)
    if view.trace.interventions:
        st.info("Changes and the temperature in the sidebar are not at work in this run.", icon=":material/info:")


@shared_result("Reading the long text …")
def _run(checkpoint: Checkpoint, text: str) -> LongRun:
    return long.long_run(checkpoint, text)


@shared_result("Reading all heads …")
def _all_heads(checkpoint: Checkpoint, text: str) -> Array:
    """(layers, heads, rows, columns)"""
    return long.pooled_heads(_run(checkpoint, text))


@shared_result()
def _whole_head(checkpoint: Checkpoint, text: str, place: Place, head: int) -> Array:
    """(rows, columns)"""
    return long.pooled_head(_run(checkpoint, text), place, head)


def _show_all_heads(view: View, text: str) -> Drawing:
    run, values = _run(view.translator, text), _all_heads(view.translator, text)
    title = f"{shown_name(view.trace.checkpoint)} {view.trace.checkpoint_hash[:8]}, long text of {len(run)} tokens"
    drawing = heads_picture(run, title, view.layer, view.head, values)
    return mosaic_picture(
        drawing, HEADS, lambda _kind, layer, head: controls.set_controls({"layer": layer, "head": head})
    )


def _describe_sinks(view: View, text: str) -> None:
    """How much weight the first token gets, and where the most."""
    found = _weight_on_first(view.translator, text)
    layer, head = map(int, np.unravel_index(found.argmax(), found.shape))
    by_layer = ", ".join(f"{number}: {mean:.1%}" for number, mean in enumerate(found.mean(axis=1)))
    st.caption(
        f"Weight on the first token, mean over all later queries, by layer: {by_layer}. Most in layer {layer}, head "
        f"{head}: {found[layer, head]:.1%}. What happens without it: Streaming, below, and the tab Sinks."
    )


@shared_result()
def _weight_on_first(checkpoint: Checkpoint, text: str) -> Array:
    """(layers, heads)"""
    return long.weight_on_first(_run(checkpoint, text))


def heads_picture(run: LongRun, title: str, layer: int, head: int, values: Array | None = None) -> Drawing:
    """All heads; `values`: from `pooled_heads`, if they are known."""
    kind, n, size = run.kinds[0].name, len(run), long.square_size(len(run), long.SMALL)
    groups = tuple(tuple(range(start, min(start + size, n))) for start in range(0, n, size))
    names = group_texts(run.tokens.labels, groups)
    names = numbered_spans(names, size) if size > 1 else names
    seen = long.allowed(run, (kind, 0), (0, n), (0, n), size)
    found = long.pooled_heads(run) if values is None else values
    return mosaic([Group(kind, KINDS[kind], found, names, names, seen, pool=size)], (kind, layer, head), title=title)


def head_picture(run: LongRun, place: Place, head: int) -> Drawing:
    """The whole of one head."""
    whole = (0, len(run))
    return long_map([_look(run, place, long.pooled_head(run, place, head), whole, whole)], labels(run.tokens.labels))


@st.fragment
def _show_head(view: View, text: str) -> None:
    """The whole head, coarse, and what was zoomed into."""
    run, place = _run(view.translator, text), (view.kind, view.layer)
    n, case = len(run), (view.trace.checkpoint_hash, text, view.place)
    looks = [_look(run, place, _whole_head(view.translator, text, place, view.head), (0, n), (0, n))]
    asked, look = st.session_state.get(LOOK, (None, {}))
    look = look if asked == case else {}
    row = look.get("row")
    row = row if isinstance(row, int) and 0 <= row < n else None
    if look and 0 < look["span"] < n:
        span = look["span"]
        (top, left) = (min(max(look[side], 0), n - span) for side in ("top", "left"))
        rows, columns = (top, top + span), (left, left + span)
        size = long.square_size(span, long.CELLS)
        values = long.largest(run, place, slice(view.head, view.head + 1), rows, columns, size)[0]
        looks.append(_look(run, place, values, rows, columns))
    exact = None if row is None else long.weights(run, place, slice(view.head, view.head + 1), (row, row + 1))[0, 0]
    title = f"{view.place.title}, long text of {n} tokens"
    drawing = long_map(looks, labels(run.tokens.labels), row=row, weights=exact, title=title)
    draw(drawing, HEAD, on_look_change=lambda: _take_look(case))
    if exact is None:
        st.caption("Click a query: its exact weights are then under the pointer, and the largest of them listed here.")
    else:
        best = np.argsort(-exact, kind="stable")[:LISTED]
        names = labels(run.tokens.labels)
        listed = ", ".join(f"{exact[key]:.3g} on {key} {as_markdown(names[key])}" for key in best if exact[key] > 0)
        st.caption(f"Query {row} {as_markdown(names[row])}: {listed}.")


def _look(run: LongRun, place: Place, values: Array, rows: long.Span, columns: long.Span) -> Look:
    size = long.square_size(rows[1] - rows[0], long.CELLS)
    seen = long.allowed(run, place, rows, columns, size)
    return Look(np.where(seen, values, np.nan), rows[0], columns[0], size)


def _take_look(case: tuple) -> None:
    look = st.session_state[HEAD].get("look")
    if isinstance(look, dict) and all(isinstance(look.get(name), int) for name in ("top", "left", "span")):
        st.session_state[LOOK] = case, look


def _choose_window(run: LongRun) -> tuple[long.Span, float]:
    """The tokens that are looked at one by one, and a temperature."""
    st.markdown("**A window of the text**, token by token; what lies outside it is summed.")
    left, middle, right = st.columns(3)
    sizes = {size: name for size, name in WINDOWS.items() if size <= len(run)} or {len(run): str(len(run))}
    size = controls.choice(
        "Tokens", sizes, "long_window", default=min(sizes, key=lambda each: abs(each - 32)), place=left
    )
    last = len(run) - size
    start = controls.number("First token", (0, last), last, "long_first", place=middle)
    tau = controls.slider("Temperature τ of these weights", (0.1, 5.0), 1.0, "long_tau", step=0.1, place=right)
    return (start, start + size), tau


def _show_window(view: View, run: LongRun, opened: Opened, window: long.Span) -> list[Picture]:
    """Map and lines of the window; the keys outside it are one more key on each side."""
    start, end = window
    tokens = run.tokens.labels[start:end]
    names = [f"{start + i} {name}" for i, name in enumerate(labels(tokens))]
    causal = run.kinds[0].causal
    parts, keys = [opened.before[:, None], opened.weights], [BEFORE, *names]
    seen = [np.full((len(names), 1), start > 0), long.allowed(run, (view.kind, view.layer), window, window)]
    if not causal:
        parts, keys, seen = (
            [*parts, opened.after[:, None]],
            [*keys, AFTER],
            [*seen, np.full((len(names), 1), end < len(run))],
        )
    values, mask = np.hstack(parts).astype(np.float32), np.hstack(seen)
    figure = head_map(names, keys, values, mask, "attention weight")
    drawing = lines(
        values[None],
        names,
        keys,
        heads=[view.head],
        allowed=mask[None],
        numbered=False,
        title=f"{view.place.title}, tokens {start} to {end - 1}",
    )
    left, right = st.columns(2)
    with left:
        chart(figure, key=MAP, alt="Weights of the window: rows are queries, columns keys")
    with right:
        draw(drawing, LINES)
    outside = opened.before + opened.after
    st.caption(
        f"On average {outside.mean():.1%} of a query's weight lies outside these {end - start} tokens, at most "
        f"{outside.max():.1%}, at query {as_markdown(names[int(outside.argmax())])}."
    )
    return [Picture("Map of the window", MAP, figure), Picture("Lines of the window", LINES, drawing)]


def _show_row(view: View, run: LongRun, window: long.Span, tau: float) -> None:
    """The softmax of one query, step by step."""
    names = [f"{window[0] + i} {name}" for i, name in enumerate(labels(run.tokens.labels[slice(*window)]))]
    row = controls.select("Query", dict(enumerate(names)), "long_query", default=len(names) - 1)
    found = long.open_row(run, (view.kind, view.layer), view.head, window[0] + row, window, tau)
    total = found.exponentials.sum() + found.outside
    best = np.argsort(-found.exponentials, kind="stable")[:LISTED]
    best = best[found.exponentials[best] > 0]
    rest = float(found.exponentials.sum() - found.exponentials[best].sum())
    others = len(names) - len(best)
    sums = {f"{others} others inside": rest, f"{len(run) - len(names)} outside": found.outside}
    table = pd.DataFrame(
        {
            "key": [*(names[key] for key in best), *sums],
            "q · k": [*found.scores[best], *([np.nan] * len(sums))],
            "e^(s − max)": [*found.exponentials[best], *sums.values()],
            "weight": [*found.weights[best], *(part / total for part in sums.values())],
        }
    )
    controls.table(table, floats="%.4g")
    explain(
        "Each weight is its exponential divided by the sum over all keys that the mask allows, those outside the "
        "window included. The temperature here divides the scores of this picture; the run itself had none.",
        r"\begin{aligned} s_j &= q \cdot k_j \cdot \mathrm{scale} / \tau \\"
        r"\alpha_j &= \frac{e^{s_j - \max s}}{\sum_{k \in \text{window}} e^{s_k - \max s} "
        r"+ \sum_{k \notin \text{window}} e^{s_k - \max s}} \end{aligned}",
        "3.2.1",
    )


def _show_surprise(run: LongRun) -> Picture:
    figure = _bits_chart({"this run": long.bits_by_position(run.log_probabilities)}, run.positions)
    st.markdown("**What each token costs, by its position**")
    chart(figure, key=SURPRISE, alt="Mean of −log₂ p of the tokens, by position")
    if len(run) > run.positions + len(run) // 8:
        early, late = (_bits(part) for part in np.split(run.log_probabilities, [run.positions - 1]))
        lost = late > early + LOST
        said = "Beyond the positions it was built for, the model loses its way." if lost else "It does no worse there."
        st.caption(f"Up to position {run.positions:,}: {early:.2f} bits a token; beyond: {late:.2f}. {said}")
    return Picture("Bits by position", SURPRISE, figure)


def _show_streaming(view: View, text: str, run: LongRun) -> None:
    """What a model that keeps a window of its past loses, with and without the first tokens."""
    st.markdown("**Streaming: keep a window of the past**")
    if reason := streaming.why_no_streaming(view.translator):
        st.caption(reason)
        return
    tokens = min(len(run), streaming.MOST_TOKENS)
    sizes = {size: f"{size:,}" for size in (16, 64, 256, 512, 1024) if size < tokens // 2}
    if not sizes:
        st.caption("The text is too short: type or paste more, or take the long example.")
        return
    st.markdown(
        "Each query sees the last tokens only, as if the keys and values of all others had been dropped from the "
        f"cache; or the first {streaming.SINKS} as well, with the positions that they have in the text or in the "
        "cache. After Xiao et al. 2024, “Efficient Streaming Language Models with Attention Sinks”."
    )
    window = controls.choice(
        "Keys a query sees", sizes, "long_stream", default=min(sizes, key=lambda one: abs(one - 256))
    )
    case = view.translator, text, window
    found = compute_on_request("Compare", "long_compare", case, lambda: streaming.compare(*case))
    if found is None:
        st.caption("Four runs on the text; nothing runs before you press the button.")
        return
    figure = _bits_chart({name: long.bits_by_position(each) for name, each in found.items()}, run.positions)
    chart(figure, key=STREAM, alt="Mean of −log₂ p by position, for each way to cut the cache")
    late = {name: _bits(each[min(run.positions, tokens // 2) :]) for name, each in found.items()}
    best = min(late, key=late.get)
    listed = "; ".join(f"{name}: {bits:.2f}" for name, bits in late.items())
    full, cut = (streaming.cache_bytes(view.translator, n) / 1e6 for n in (tokens, window))
    st.caption(
        f"Bits a token after position {min(run.positions, tokens // 2):,}: {listed}. Least with {best}. The cache of "
        f"{tokens:,} tokens takes {full:.1f} MB in fp32, that of {window:,} takes {cut:.1f} MB, however long the text."
    )
    export_tab(view, "streaming", Call(streaming.stream_arrays, *case), Picture("Bits by position", STREAM, figure))


def _bits_chart(curves: Mapping[str, tuple[Array, Array]], built_for: int) -> StableFigure:
    """Mean of −log₂ p by position, a line each; a mark where the positions end that the model was built for.

    Args:
        curves: positions and bits, (part,) each, by name.
        built_for: positions; no mark where the text is no longer.
    """
    looks = zip(OKABE_ITO, ("solid", "dash", "dot", "dashdot"), strict=False)
    lines = {
        name: Line(positions, bits, colour, "circle", dash, size=4)
        for (name, (positions, bits)), (colour, dash) in zip(curves.items(), looks, strict=False)
    }
    ends = max(positions[-1] for positions, _ in curves.values()) > built_for
    marks = [Mark(x=built_for, dash="dash", text=f"{built_for} positions")] if ends else []
    titles = ("position in the text", "−log₂ p, bits a token")
    return Lines(lines, titles, ".2f", height=300 + 24 * len(curves), marks=marks).draw()


def _bits(log_probabilities: Array) -> float:
    return float(-log_probabilities.mean() / np.log(2))
