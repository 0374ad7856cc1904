"""Efficient attention, tab "Long text": a run on up to 4,096 tokens, seen from afar and from near.

The tab is not a view, because its map of a head has its own state: what was zoomed into and which query was clicked
belong to one run and head, and only the map is drawn again when they change, not the other pictures of thousands of
tokens. Its numbers are views, for the export (pages/views/beyond/long_text.py).
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
import streamlit as st

from model.analysis.long import long_run as long
from model.analysis.long import streaming
from model.analysis.long.long_run import LongRun, Opened, Place
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.store import shown_name
from model.language import in_this_language, later, tr
from model.needs import Need
from model.run import Run
from model.trace import KIND_TITLES, Array
from pages.compute.cache import shared_result
from pages.compute.on_request import compute_on_request
from pages.views import Offer
from pages.views.beyond import long_text as views
from pages.widgets import controls
from pages.widgets.canvas import draw, mosaic_picture
from pages.widgets.chart import chart
from pages.widgets.explain import say
from pages.widgets.export import Picture, export_view
from pages.widgets.page_links import offer_checkpoint
from viz.canvas.lines import lines
from viz.canvas.long_map import LongWindow, long_map
from viz.canvas.mosaic import Group, mosaic
from viz.drawing import Drawing
from viz.special.heads_and_layers import group_texts, head_map, numbered_spans
from viz.tokens import as_markdown, labels

HEADS, HEAD, MAP, LINES, SURPRISE = "long-heads", "long-head", "long-window-map", "long-window-lines", "long-surprise"
STREAM, LOST = "long-streaming", 0.2
"""a loss in bits that is worth a sentence"""
LOOK = "long-look"
"""of the session: what of the head is looked at"""
LISTED = 8
"""keys of a query, those with the largest weights"""
BEFORE, AFTER = later("‹ before"), later("after ›")


def show_long_text(run: Run) -> None:
    """All heads of a long run, one of them to zoom into, and a window of the text with what lies outside it."""
    if reason := long.why_no_long_run(run.opened):
        st.info(tr(reason), icon=":material/info:")
        offer_checkpoint(Need.LANGUAGE_MODEL)
        return
    text = _choose_text(run)
    text_run = _run(run.opened, text)
    _describe(run, text_run)
    overview = _show_all_heads(run, text)
    _describe_sinks(run, text)
    place = run.kind, run.layer
    say("long_text", "One head", place=run.place.title)
    st.fragment(in_this_language(_show_head))(run, text)
    span, tau = _choose_window(run, text)
    opened = long.open_window(text_run, place, run.head, span, tau)
    maps = _show_window(run, text_run, opened, span)
    _show_row(run, text_run, span, tau)
    pictures = [Picture("All heads", HEADS, overview), *maps]
    if len(text_run.log_probabilities):
        pictures.append(_show_surprise(text_run))
    chosen = {"text": text, "size": span[1] - span[0], "start": span[0], "tau": tau}
    _offer_export("window", lambda: export_view(views.window(run, **chosen), tuple(pictures)))
    _show_streaming(run, text, text_run)


def _choose_text(run: Run) -> str:
    """What was typed, or the checkpoint's long example."""
    try:
        example = long.example_text(run.opened)
    except ValueError:
        return run.source
    helped = tr(
        "{count:,} words from the development sentences that show a head of this model best, one after another. "
        "When off: the text in the sidebar.",
        count=len(example.split()),
    )
    offer = Offer(tr("A long example instead of my text"), start=False, help=helped)
    return example if controls.toggle(offer, "long_example") else run.source


def _describe(run: Run, text_run: LongRun) -> None:
    tokens = len(text_run)
    say(
        "long_text",
        "The run",
        tokens=tokens,
        kept=text_run.bytes / 1e6,
        squares=sum(map(len, text_run.q.values())) * tokens**2 * 4 / 1e6,
        limit=long.most_tokens(run.opened),
        positions=text_run.positions,
        changed=bool(run.trace.interventions),
    )


@shared_result(later("Reading the long text …"))
def _run(checkpoint: Checkpoint, text: str) -> LongRun:
    return long.long_run(checkpoint, text)


@shared_result(later("Reading all heads …"))
def _all_heads(checkpoint: Checkpoint, text: str) -> Array:
    """(layers, heads, rows, columns)"""
    return long.pooled_heads(_run(checkpoint, text))


@shared_result()
def _whole_head(checkpoint: Checkpoint, text: str, place: Place, head: int) -> Array:
    """(rows, columns)"""
    return long.pooled_head(_run(checkpoint, text), place, head)


def _show_all_heads(run: Run, text: str) -> Drawing:
    text_run, values = _run(run.opened, text), _all_heads(run.opened, text)
    title = f"{shown_name(run.trace.checkpoint)} {run.trace.checkpoint_hash[:8]}, long text of {len(text_run)} tokens"
    drawing = heads_picture(text_run, title, run.layer, run.head, values)
    return mosaic_picture(
        drawing, HEADS, lambda _kind, layer, head: controls.set_controls({"layer": layer, "head": head})
    )


def _describe_sinks(run: Run, text: str) -> None:
    """How much weight the first token gets, and where the most."""
    found = _weight_on_first(run.opened, text)
    layer, head = map(int, np.unravel_index(found.argmax(), found.shape))
    most = {"layer": layer, "head": head, "most": found[layer, head]}
    say("long_text", "The first token", layers=found.mean(axis=1), **most)


@shared_result()
def _weight_on_first(checkpoint: Checkpoint, text: str) -> Array:
    """(layers, heads)"""
    return long.weight_on_first(_run(checkpoint, text))


def heads_picture(text_run: LongRun, title: str, layer: int, head: int, values: Array | None = None) -> Drawing:
    """All heads; `values`: from `pooled_heads`, if they are known."""
    kind, n, size = text_run.kinds[0].name, len(text_run), long.square_size(len(text_run), long.SMALL)
    groups = tuple(tuple(range(start, min(start + size, n))) for start in range(0, n, size))
    names = group_texts(text_run.tokens.labels, groups)
    names = numbered_spans(names, size) if size > 1 else names
    seen = long.allowed(text_run, (kind, 0), (0, n), (0, n), size)
    found = long.pooled_heads(text_run) if values is None else values
    paths = [text_run.kinds[0].path(number) + (f".pool {size}" if size > 1 else "") for number in range(len(found))]
    group = Group(kind, KIND_TITLES[kind], found, names, names, seen, pool=size, paths=paths)
    return mosaic([group], (kind, layer, head), title=title)


def _show_head(run: Run, text: str) -> None:
    """The whole head, coarse, and what was zoomed into."""
    text_run, place = _run(run.opened, text), (run.kind, run.layer)
    n, case = len(text_run), (run.trace.checkpoint_hash, text, run.place)
    looks = [window_of(text_run, place, _whole_head(run.opened, text, place, run.head), (0, n), (0, n))]
    asked, look = st.session_state.get(LOOK, (None, {}))
    look = look if asked == case else {}
    row = look.get("row")
    row = row if isinstance(row, int) and 0 <= row < n else None
    if look and 0 < look["span"] < n:
        span = look["span"]
        (top, left) = (min(max(look[side], 0), n - span) for side in ("top", "left"))
        rows, columns = (top, top + span), (left, left + span)
        size = long.square_size(span, long.CELLS)
        values = long.largest(text_run, place, slice(run.head, run.head + 1), rows, columns, size)[0]
        looks.append(window_of(text_run, place, values, rows, columns))
    exact = None if row is None else long.weights(text_run, place, slice(run.head, run.head + 1), (row, row + 1))[0, 0]
    title = f"{run.place.title}, long text of {n} tokens"
    at = {"path": text_run.kinds[0].path(run.layer), "head": run.head}
    drawing = long_map(looks, labels(text_run.tokens.labels), row=row, weights=exact, title=title, **at)
    draw(drawing, HEAD, on_look_change=lambda: _take_look(case))
    names, keys = labels(text_run.tokens.labels), []
    if exact is not None:
        best = np.argsort(-exact, kind="stable")[:LISTED].tolist()
        keys = [{"weight": exact[key], "position": key, "name": names[key]} for key in best if exact[key] > 0]
    say("long_text", "One query", row=row, name="" if row is None else names[row], keys=keys)


def window_of(text_run: LongRun, place: Place, values: Array, rows: long.Span, columns: long.Span) -> LongWindow:
    """Weights at most by square of cells, as the map draws them; squares that the mask hides are NaN."""
    size = long.square_size(rows[1] - rows[0], long.CELLS)
    seen = long.allowed(text_run, place, rows, columns, size)
    return LongWindow(np.where(seen, values, np.nan), rows[0], columns[0], size)


def _take_look(case: tuple) -> None:
    look = st.session_state[HEAD].get("look")
    if isinstance(look, dict) and all(isinstance(look.get(name), int) for name in ("top", "left", "span")):
        st.session_state[LOOK] = case, look


def _choose_window(run: Run, text: str) -> tuple[long.Span, float]:
    """The tokens that are looked at one by one, and a temperature."""
    st.markdown(tr("**A window of the text**, token by token; what lies outside it is summed."))
    left, middle, right = st.columns(3)
    size = controls.draw(run, views.SIZE, left, chosen={"text": text})
    start = controls.draw(run, views.START, middle, chosen={"text": text, "size": size})
    return (start, start + size), controls.draw(run, views.TAU, right)


def _show_window(run: Run, text_run: LongRun, opened: Opened, window: long.Span) -> list[Picture]:
    """Map and lines of the window; the keys outside it are one more key on each side."""
    start, end = window
    tokens = text_run.tokens.labels[start:end]
    names = [f"{start + i} {name}" for i, name in enumerate(labels(tokens))]
    causal = text_run.kinds[0].causal
    parts, keys = [opened.before[:, None], opened.weights], [tr(BEFORE), *names]
    seen = [np.full((len(names), 1), start > 0), long.allowed(text_run, (run.kind, run.layer), window, window)]
    if not causal:
        parts, keys, seen = (
            [*parts, opened.after[:, None]],
            [*keys, tr(AFTER)],
            [*seen, np.full((len(names), 1), end < len(text_run))],
        )
    values, mask = np.hstack(parts).astype(np.float32), np.hstack(seen)
    figure = head_map(names, keys, values, mask)
    drawing = lines(
        values[None],
        names,
        keys,
        heads=[run.head],
        allowed=mask[None],
        numbered=False,
        title=f"{run.place.title}, tokens {start} to {end - 1}",
        path=f"{text_run.kinds[0].path(run.layer)}.window {start}:{end}",
    )
    left, right = st.columns(2)
    with left:
        chart(figure, key=MAP, alt="Weights of the window: rows are queries, columns keys")
    with right:
        draw(drawing, LINES)
    outside = opened.before + opened.after
    st.caption(
        tr(
            "On average {mean:.1%} of a query's weight lies outside these {tokens} tokens, at most {most:.1%}, at "
            "query {query}.",
            mean=float(outside.mean()),
            tokens=end - start,
            most=float(outside.max()),
            query=as_markdown(names[int(outside.argmax())]),
        )
    )
    return [Picture("Map of the window", MAP, figure), Picture("Lines of the window", LINES, drawing)]


def _show_row(run: Run, text_run: LongRun, window: long.Span, tau: float) -> None:
    """The softmax of one query, step by step."""
    names = [f"{window[0] + i} {name}" for i, name in enumerate(labels(text_run.tokens.labels[slice(*window)]))]
    row = controls.select(Offer(tr("Query"), dict(enumerate(names)), len(names) - 1), "long_query")
    found = long.open_row(text_run, (run.kind, run.layer), run.head, window[0] + row, window, tau)
    total = found.exponentials.sum() + found.outside
    best = np.argsort(-found.exponentials, kind="stable")[:LISTED]
    best = best[found.exponentials[best] > 0]
    rest = float(found.exponentials.sum() - found.exponentials[best].sum())
    others = len(names) - len(best)
    inside = tr("{count} others inside", count=others)
    sums = {inside: rest, tr("{count} outside", count=len(text_run) - len(names)): found.outside}
    table = pd.DataFrame(
        {
            "key": [*(names[key] for key in best), *sums],
            "q · k": [*found.scores[best], *([np.nan] * len(sums))],
            "e^(s − max)": [*found.exponentials[best], *sums.values()],
            "weight": [*found.weights[best], *(part / total for part in sums.values())],
        }
    )
    controls.table(table, floats="%.4g")
    with st.container(border=True):
        say("long_text", "The softmax of one query")


def _offer_export(name: str, draw: Callable[[], None]) -> None:
    """One line below the pictures; the numbers are computed when it is opened."""
    controls.fold(
        {"export": (f":material/download: {tr('Export')}", draw)}, f"foot-long-{name}", tr("About these pictures")
    )


def _show_surprise(text_run: LongRun) -> Picture:
    figure = views.bits_chart(
        {"this run": long.bits_by_position(text_run.log_probabilities)}, text_run.positions
    ).draw()
    st.markdown(tr("**What each token costs, by its position**"))
    chart(figure, key=SURPRISE, alt="Mean of −log₂ p of the tokens, by position")
    if len(text_run) > text_run.positions + len(text_run) // 8:
        early, late = (_bits(part) for part in np.split(text_run.log_probabilities, [text_run.positions - 1]))
        say(
            "long_text",
            "Bits by position",
            positions=text_run.positions,
            early=early,
            late=late,
            lost=late > early + LOST,
        )
    return Picture("Bits by position", SURPRISE, figure)


def _show_streaming(run: Run, text: str, text_run: LongRun) -> None:
    """What a model that keeps a window of its past loses, with and without the first tokens."""
    st.markdown(tr("**Streaming: keep a window of the past**"))
    if reason := streaming.why_no_streaming(run.opened):
        st.caption(tr(reason))
        return
    tokens = min(len(text_run), streaming.MOST_TOKENS)
    if views.CACHE.offer(run, {"text": text}) is None:
        st.caption(tr("The text is too short: type or paste more, or take the long example."))
        return
    say("long_text", "Streaming, in words", sinks=streaming.SINKS)
    kept = controls.draw(run, views.CACHE, chosen={"text": text})
    case = run.opened, text, kept
    found = compute_on_request(tr("Compare"), "long_compare", case, lambda: streaming.compare(*case))
    if found is None:
        st.caption(tr("Four runs on the text; nothing runs before you press the button."))
        return
    result = views.streaming(run, text=text, window=kept, outcome=found)
    figure = result.shows["bits"].draw()
    chart(figure, key=STREAM, alt="Mean of −log₂ p by position, for each way to cut the cache")
    after = min(text_run.positions, tokens // 2)
    late = {name: _bits(each[after:]) for name, each in found.items()}
    full, cut = (streaming.cache_bytes(run.opened, n) / 1e6 for n in (tokens, kept))
    best = min(late, key=late.get)
    say(
        "long_text",
        "Streaming, compared",
        after=after,
        strategies=late,
        best=best,
        tokens=tokens,
        full=full,
        kept=kept,
        cut=cut,
    )
    _offer_export("streaming", lambda: export_view(result, (Picture("Bits by position", STREAM, figure),)))


def _bits(log_probabilities: Array) -> float:
    return float(-log_probabilities.mean() / np.log(2))
