"""Efficient attention: what spares the n x n matrix, on the q, k and v of this run."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from model.analysis.mechanisms.flash import FlashRun, count_read_tiles, flash_attention, fused_kernel, tile_sizes
from model.analysis.mechanisms.linear_attention import (
    DRAWS,
    FEATURES,
    FeatureSweep,
    draw_omega,
    kernel_weights,
    linear_attention,
    positive_features,
    recurrent_attention,
    sweep_features,
)
from model.analysis.mechanisms.sparse_patterns import (
    SizeSweep,
    head_weights,
    kept_cells,
    measure_kept,
    measure_sinks,
    pattern_sizes,
    sink_changes,
    sweep_sizes,
)
from model.background import attention_costs as costs
from model.background.layer_size import LayerSize, attention_products, layer_sizes
from model.background.stopwatch import FITTED, Timings, fit_power
from model.interventions import PatternMask
from model.language import Numeral, Sentence, sentence, sentence_of, tr
from model.network.masks import pattern_mask
from model.run import Run
from model.trace import Array, Trace
from pages.text import names_in
from pages.views import Need, OnRequest, Result, answer, view
from pages.views.beyond.timing import ALONE, MEASURE, time_chart, time_points, time_side_by_side, time_table
from pages.views.controls import choice, menu, player, several, slider, steps
from pages.views.shared import axes
from viz.forms import Bars, Line, Lines, Map, Maps, Mark, Texts
from viz.labels import say_label, say_options
from viz.latex import signed
from viz.theme import CHOSEN, OKABE_ITO
from viz.tiles import Tiles
from viz.tokens import labels, numbered

EXPLAINED = 8
"""a difference above so many roundings of the largest score is no rounding; trained heads stay below one"""


def _tile_sizes(run: Run) -> dict[int, str]:
    return {size: f"{size} × {size}" for size in tile_sizes(run.attention)}


TILE = choice(
    "Tile, queries × keys",
    _tile_sizes,
    lambda run: min(_tile_sizes(run), key=lambda size: abs(size - 4)),
    key="flash_tile",
)
STEP = player(
    "Tile", lambda run, tile: (1, count_read_tiles(run.attention.mask[run.head], tile)), 3, key="flash_step"
)  # None where every cell is masked


@view("FlashAttention, tile by tile", code=(flash_attention, fused_kernel))
def flash(run: Run, tile: int = TILE, step: int | None = STEP) -> Result:
    """One head computed tile by tile, never holding more than one tile of scores."""
    if step is None:
        return Result()
    attention = run.attention
    tiled, names = flash_attention(attention, run.head, tile), axes(attention)
    tiles = np.hstack([tiled.rows, tiled.columns])
    fused = fused_kernel(attention, run.head, run.trace.device)
    facts = {
        "tile": tiles[step - 1],
        **{name: getattr(tiled, name) for name in ("difference", "rounding", "tile_bytes", "square_bytes")},
        "read": len(tiled.rows),
        "skipped": len(tiled.skipped),
        "unexplained": tiled.difference > EXPLAINED * tiled.rounding,
        "fused": fused,
        "searches": Need.MASKED_MODEL not in run.opened.features,
    }
    return Result(
        {
            "tile": Tiles(
                *names,
                *(each[run.head] for each in (attention.q, attention.k, attention.v)),
                tiled.scores,
                *(each[step] for each in (tiled.m, tiled.l, tiled.o)),
                most=tiled.l.max(),
                tiles=tiles,
                skipped=tiled.skipped,
                step=step - 1,
            ),
            "sums": _sums(tiled, names[0], step),
        },
        facts,
        {name: getattr(tiled, name) for name in ("rows", "columns", "skipped", "scores", "m", "l", "o", "rescaling")},
    )


def _sums(tiled: FlashRun, queries: Sequence[str], step: int) -> pd.DataFrame:
    """m and l of the tile's queries before and after it."""
    rows = slice(*tiled.rows[step - 1])
    return pd.DataFrame(
        {
            "query": queries[rows],
            "m before": [tr(_as_text(value)) for value in tiled.m[step - 1, rows]],
            "m after": [tr(_as_text(value)) for value in tiled.m[step, rows]],
            "rescaled by": tiled.rescaling[step - 1, rows],
            "ℓ before": tiled.l[step - 1, rows],
            "ℓ after": tiled.l[step, rows],
        }
    )


def _as_text(value: float) -> Numeral:
    return signed(value, ".5g") if np.isfinite(value) else Numeral("−∞")


CLOSE = 0.1
"""error of z that counts as close"""
NO_ROUNDING = 1e-3
"""an error of the weights above this is no rounding"""
DECIMALS = range(-3, 4)
"""powers of ten that are written as decimals"""
RANDOM, ELU = OKABE_ITO[0], OKABE_ITO[1]


def _counts(values: Sequence[int]) -> dict[int, str]:
    return {value: Numeral(f"{value:,}") for value in values}


def _sees(run: Run) -> bool:
    return bool(run.attention.mask[run.head].any())


SIZE_OF_FEATURES = steps(
    "Random features m", lambda run: _counts(FEATURES) if _sees(run) else {}, 256, key="linear_features"
)
DRAW = slider("Draw (seed)", lambda run: (0, DRAWS - 1 if _sees(run) else -1), 0, key="linear_draw")


def sweep_head(trace: Trace, kind: str, layer: int, head: int) -> FeatureSweep:
    """The errors of random features in a head of a run."""
    return sweep_features(trace.attention(kind, layer), head)


@view("Linear attention", code=(positive_features, draw_omega, kernel_weights, recurrent_attention, linear_attention))
def linear(run: Run, features: int | None = SIZE_OF_FEATURES, draw: int | None = DRAW) -> Result:
    """One head with the weights of two feature maps, and how far they are from the softmax's."""
    if features is None:
        return Result()
    attention, head = run.attention, run.head
    sweep: FeatureSweep = run.compute(sweep_head, run.trace, run.kind, run.layer, head)
    made, mask = linear_attention(attention, head, features, draw), attention.mask[head]
    titles = ("Softmax, this run", f"Random features, m = {features}", "elu + 1")
    maps = dict(zip(titles, (made.exact, made.random, made.elu), strict=True))
    most = int(sweep.features[-1])
    facts = {
        "draws": DRAWS,
        "close": CLOSE,
        "fewest": int(sweep.features[0]),
        "most": most,
        "z_errors": (sweep.z_band[1, 0], sweep.z_band[1, -1]),
        "distance": sweep.distance,
        "limits": (sweep.weights_limit, sweep.z_limit),
        "enough": sweep.enough(CLOSE),
        "power": sweep.deviation(most),
        "decimal": DECIMALS[0] < sweep.deviation(most) < DECIMALS[-1],
        "limited": sweep.weights_limit > NO_ROUNDING,
        "masked": not mask.all(),
        "errors_of_elu": (made.weight_errors[0], made.z_errors[0]),
        "errors_of_random": (made.weight_errors[1], made.z_errors[1]),
        "recurrence": made.recurrence,
        "biased": attention.bias is not None and bool(attention.bias[head].any()),
    }
    work, sizes = _work(run, features)
    return Result(
        {
            "weights": _errors(
                sweep.features, sweep.weights_band, made.weight_errors[0], features, "total variation of the weights"
            ),
            "z": _errors(sweep.features, sweep.z_band, made.z_errors[0], features, "relative error of z", CLOSE),
            "maps": Maps(*axes(attention), {title: Map(weights, mask) for title, weights in maps.items()}),
            "work": work,
        },
        facts | sizes,
        {"weights_by_draw": sweep.weights, "z_by_draw": sweep.z},
    )


def _errors(features: Array, band: Array, elu: float, chosen: int, title: str, close: float | None = None) -> Lines:
    """An error over the number of random features, both axes logarithmic.

    `band`, (3, size), has the 10th, 50th and 90th percentile over the draws, `elu` the error of elu(x) + 1; `close` is
    an error to compare with.
    """
    low, median, high = band
    ends = [features[0], features[-1]]
    marks = [Mark(x=chosen, colour=CHOSEN)] + ([] if close is None else [Mark(y=close)])
    shown = [low.min(), high.max(), elu] + ([] if close is None else [close])
    return Lines(
        {
            "10th to 90th percentile": Line(features, median, between=(low, high)),
            "random features, median": Line(features, median, RANDOM, "circle", width=3),
            "elu + 1": Line(ends, [float(elu)] * 2, ELU, dash="dash"),
        },
        ("random features m (log)", f"{title} (log)"),
        ".5g",
        "xy",
        features,
        height=380,
        marks=marks,
        layout={"yaxis": {"range": _round_range(shown), "tickformat": "~g", "dtick": "D2"}, "margin": {"t": 80}},
    )


def _round_range(values: Sequence[float]) -> list[float]:
    """Ends of a logarithmic axis as powers of ten, at the next 1, 2 or 5 times a power of ten beyond the values.

    An error of 0, as of a single key, has no place on it.
    """
    values = [value for value in values if value > 0] or [1e-16, 1.0]
    steps = np.log10([1, 2, 5, 10])
    low, high = np.log10([min(values), max(values)])
    # A value on a label is below the next one, whatever the rounding of its logarithm.
    low, high = low + 1e-9, high + 1e-9
    below = np.floor(low) + steps[steps <= low - np.floor(low)].max()
    above = np.floor(high) + steps[steps > high - np.floor(high)].min()
    return [float(below), float(above)]


def _work(run: Run, features: int) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Multiply-adds and memory of the head, and facts about them."""
    attention = run.attention
    (queries, d_k), (keys, d_v) = attention.q[run.head].shape, attention.v[run.head].shape
    random, elu = (
        costs.linear_products(queries + keys, m, d_k, d_v, drawn) for m, drawn in ((features, True), (d_k, False))
    )
    table = pd.DataFrame(
        {
            "weights": ["softmax", "random features", "elu + 1"],
            "features": [np.nan, features, d_k],
            "multiply-adds": [attention_products(queries * keys, d_k, d_v), random, elu],
            "weights or state, numbers": [queries * keys, features * (d_v + 1), d_k * (d_v + 1)],
        }
    )
    even = [2 * features * (d_k + d_v + 1) // (d_k + d_v), 2 * d_k * (d_v + 1) // (d_k + d_v)]
    return table, {"queries": queries, "keys": keys, "d_k": d_k, "d_v": d_v, "even": even}


WINDOW, STRIDED, GLOBAL, BLOCK = "window", "strided", "global", "block"
PATTERNS = {WINDOW: "Sliding window", STRIDED: "Strided", GLOBAL: "Global + window", BLOCK: "Blocks"}
SIZE = {WINDOW: "window w", STRIDED: "stride and window l", GLOBAL: "window w", BLOCK: "block b"}
NATS = 0.1
"""a difference of log p that counts as close"""
TINY = 1e-30
PATTERN = choice("Pattern", lambda run: {} if run.attention.crosses else say_options(PATTERNS), key="pattern")
PATTERN_SIZE = steps(
    lambda _, pattern: SIZE[pattern or WINDOW].capitalize(),
    lambda run, pattern: {size: str(size) for size in pattern_sizes(run.trace)} if pattern else {},
    lambda run: min(3, pattern_sizes(run.trace)[-1]),
    key="pattern_size",
)
TOKENS = several(
    "Global tokens G",
    lambda run, pattern: dict(enumerate(numbered(run.attention.key_tokens))) if pattern == GLOBAL else {},
    [0],
    most=64,
    key="pattern_global",
)


def make_pattern(name: str, size: int, tokens: Sequence[int] = ()) -> PatternMask:
    """The pattern called `name` in every self-attention."""
    return {
        WINDOW: PatternMask(size),
        STRIDED: PatternMask(size, size),
        GLOBAL: PatternMask(size, global_tokens=tuple(sorted(tokens))),
        BLOCK: PatternMask(block=size),
    }[name]


def _problem(run: Run, pattern: PatternMask) -> str:
    """Why the model cannot run with it; empty if it can."""
    try:
        run.opened.check_intervention(pattern)
    except ValueError as error:
        return sentence_of(error)
    return ""


def _sweep_case(run: Run, pattern: str | None, tokens: list[int] | None) -> tuple | None:
    """The arguments of `sweep_sizes`; None where there is nothing to sweep."""
    if pattern is None or Need.LOGITS not in run.opened.features:
        return None
    patterns = tuple((size, make_pattern(pattern, size, tokens or [])) for size in pattern_sizes(run.trace))
    if _problem(run, patterns[0][1]):
        return None
    continuation = vars(run.request.continuation) if run.request.continuation else {}
    return run.opened, run.trace, patterns, (("beam_size", run.beam_size), *continuation.items())


def _sweep(run: Run, pattern: str, tokens: list[int] | None) -> Iterator[tuple[float, SizeSweep]]:
    for done, swept in enumerate(sweep_sizes(*_sweep_case(run, pattern, tokens)), start=1):
        yield done / len(swept.sizes), swept


EVERY_SIZE = OnRequest("Run every size", "pattern_sweep", _sweep, _sweep_case, icon=":material/play_arrow:")


@view("Patterns", code=(pattern_mask, kept_cells, measure_kept, sweep_sizes), on_request=EVERY_SIZE)
def patterns(
    run: Run,
    pattern: str | None = PATTERN,
    size: int | None = PATTERN_SIZE,
    tokens: list[int] | None = TOKENS,
    outcome: SizeSweep | None = None,
) -> Result:
    """A pattern on this run: what it keeps, what is then written, and log p over its size."""
    if pattern is None:
        return Result()
    made = make_pattern(pattern, size, tokens or [])
    facts: dict[str, Any] = {"problem": _problem(run, made), "writes": _writes(run)}
    if facts["problem"]:
        return Result(facts=facts)
    changed = run.forced(*run.trace.interventions, made)
    kept = measure_kept(run.trace, run.kind, made)
    weights = head_weights(run.trace, changed.trace, (run.kind, run.layer, run.head), made)
    maps = {
        "This run": Map(weights.before, weights.visible),
        "On kept cells": Map(weights.before, weights.kept),
        "With the pattern": Map(weights.after, weights.visible_after),
    }
    layers, means = run.trace.kind(run.kind).layers, kept.share.mean(axis=1)
    rows = {"all": "n × n", "visible": "visible in this run", "kept": "kept"}
    rows = {name: row for name, row in rows.items() if name != "visible" or kept.cells["visible"] != kept.cells["all"]}
    counts = {"cells": kept.cells, "multiply-adds": kept.multiply_adds, "scores, bytes": kept.bytes}
    columns = {title: [values[row] for row in rows] for title, values in counts.items()}
    shows: dict[str, Any] = {
        "maps": Maps(*axes(run.attention), maps),
        "share": _by_layer(run, kept.share, "share of weight on kept cells"),
        "counts": pd.DataFrame({"": list(rows.values()), **columns}),
    }
    facts |= {
        "kept": int(weights.kept.sum()),
        "visible": int(weights.visible.sum()),
        "share": weights.before[weights.kept].sum() / max(weights.before.sum(), TINY),
        "lowest": (layers[int(means.argmin())], means.min()),
        "highest": (layers[int(means.argmax())], means.max()),
        "layers": len(layers),
        "log_p": None,
        "nats": NATS,
    }
    if Need.LOGITS in run.opened.features:
        facts["log_p"] = (run.trace.log_probability, changed.trace.log_probability)
        facts["count"] = len(pattern_sizes(run.trace))
        facts["swept"] = None
        if facts["writes"]:
            free, plain = replace(run, request=replace(run.request, target=None)), run.trace.interventions
            own, new = free.decoded(*plain).trace, free.decoded(*plain, made).trace
            shows["texts"] = Texts(
                {"Without the pattern": own.translation, "With the pattern": new.translation}, compared=True
            )
            facts["same"] = own.next_ids == new.next_ids
    if outcome:
        shows["sizes"] = _size_chart(outcome, size, SIZE[pattern])
        facts["swept"] = outcome
        facts |= smallest_size(outcome, pattern)
    return Result(shows, facts, vars(weights))


def _writes(run: Run) -> bool:
    """True if the model writes or fills in anything in this run."""
    features = run.opened.features
    if Need.MASKED_MODEL in features:
        return run.opened.tokenizer.mask in run.trace.streams["encoder"].tokens.ids
    if Need.LANGUAGE_MODEL in features:
        return bool(run.request.continuation and run.request.continuation.max_new_tokens)
    return True


def _by_layer(run: Run, values: Array, title: str) -> Lines:
    """A number of each head over the layers, (layer, head) and 0 to 1, and the mean of each layer."""
    layers = list(run.trace.kind(run.kind).layers)
    count = values.shape[1]
    chosen = values[layers.index(run.layer), run.head]
    return Lines(
        {
            "each head": Line(
                np.repeat(layers, count),
                values.ravel(),
                OKABE_ITO[4],
                "circle",
                "",
                names=np.tile(np.arange(count), len(layers)),
            ),
            "mean of the layer": Line(layers, values.mean(axis=1), OKABE_ITO[0], "square"),
            "chosen head": Line([run.layer], [chosen], CHOSEN, "diamond-open", "", size=14, names=[run.head]),
        },
        ("layer", title),
        ".5f",
        ticks=layers,
        of="head",
        layout={
            "xaxis": {"range": [min(layers) - 0.5, max(layers) + 0.5]},
            "yaxis": {"range": [-0.03, 1.03]},
            "margin": {"t": 80},
        },
    )


def _size_chart(sweep: SizeSweep, chosen: int, title: str) -> Lines:
    """log p of the same target over the size of a pattern; sizes that have not run are left out."""
    known = np.isfinite(sweep.log_probability)
    x, y = sweep.sizes[known], sweep.log_probability[known]
    same = sweep.same[known] == 1
    level = np.full(len(x), sweep.plain)
    return Lines(
        {
            "all sizes": Line(x, y, OKABE_ITO[7]),
            "the same output": Line(x[same], y[same], OKABE_ITO[0], "circle", "", size=11),
            "another output": Line(x[~same], y[~same], OKABE_ITO[5], "x", "", size=11),
            f"within {NATS} nats": Line(x, level, between=(level - NATS, level + NATS)),
        },
        (f"{title} (log)", "log p of the same target, nats"),
        ".4f",
        "x",
        sweep.sizes.tolist(),
        height=400,
        marks=[Mark(y=sweep.plain), Mark(x=chosen, colour=CHOSEN)],
        layout={"margin": {"t": 80}},
    )


def smallest_size(sweep: SizeSweep, pattern: str) -> dict[str, Any]:
    """Facts about the smallest size that changes almost nothing; of strides about the one that keeps the fewest
    cells."""
    passing = np.flatnonzero(sweep.passing(NATS))
    if not len(passing):
        return {"smallest": None}
    best = int(passing[np.argmin(sweep.cells[passing])] if pattern == STRIDED else passing[0])
    larger = [int(sweep.sizes[i]) for i in range(best + 1, len(sweep.sizes)) if i not in passing]
    return {
        "smallest": int(sweep.sizes[best]),
        "what": SIZE[pattern].rsplit(" ", 1)[0],
        "cost": sweep.log_probability[best] - sweep.plain,
        "cells": int(sweep.cells[best]),
        "failing": larger if pattern != STRIDED else [],
        "whole": best == len(sweep.sizes) - 1 and pattern != STRIDED,
    }


SINK = 0.5
"""share of a head's weight on one token that counts as a sink"""


def _windows(run: Run) -> tuple[int, int]:
    """None where there is no later query, or none of a causal language model."""
    tokens = len(run.attention.key_tokens)
    return 1, tokens if tokens > 1 and Need.LANGUAGE_MODEL in run.opened.features else 0


@view("Sinks", code=(measure_sinks, sink_changes))
def sinks(run: Run, window: int | None = slider("Window w", _windows, 4, key="sink_window")) -> Result:
    """Weight on the first token, and log p without it."""
    if window is None:
        lacks = None if Need.LANGUAGE_MODEL in run.opened.features else Need.LANGUAGE_MODEL
        return Result(lacks=lacks)
    weight, layers = measure_sinks(run.trace, run.kind), run.trace.kind(run.kind).layers
    layer, head = np.unravel_index(weight.weight.argmax(), weight.weight.shape)
    changes = sink_changes(len(run.attention.key_tokens), window)
    plain = run.trace.log_probability
    scores = [run.forced(*run.trace.interventions, change).trace.log_probability for change in changes.values()]
    differences = np.array(scores) - plain
    titles = ("change", "difference of log p, nats")
    return Result(
        {
            "weights": _by_layer(run, weight.weight, "weight on the first token"),
            "bars": Bars(list(changes), {"difference of log p": differences}, titles, number="+.5f", what="change"),
        },
        {
            "first": labels(run.attention.key_tokens[:1])[0],
            "above": int((weight.weight > SINK).sum()),
            "heads": weight.weight.size,
            "share": SINK,
            "most": weight.weight.max(),
            "where": (layers[layer], int(head)),
            "even": weight.even,
            "plain": plain,
            "differences": dict(zip(("first", "second", "alone", "kept", "four"), differences.tolist(), strict=True)),
        },
    )


RENARD = (10, 13, 16, 20, 25, 32, 40, 50, 63, 79)
LENGTHS = (*(each * 10**power for power in range(5) for each in RENARD), 1_000_000)
WINDOWS = (64, 128, 256, 512, 1024, 2048, 4096)
BYTES = {4: "fp32", 2: "bf16", 1: "int8"}
MEMORY = {"memory": "All", "scores": "Scores", "cache": "Cache or state", "parameters": "Parameters"}
PARTS = names_in("memory")
"""titles of the axis"""
METHODS = (
    (OKABE_ITO[0], "solid", 4),
    (OKABE_ITO[1], "dash", 2),
    (OKABE_ITO[4], "dot", 3),
    (OKABE_ITO[2], "solid", 2),
    (OKABE_ITO[7], "dashdot", 2),
    (OKABE_ITO[3], "longdash", 2),
    (OKABE_ITO[5], "dot", 2),
)
"""colour, dash and width of each method; where two lines coincide, the narrow one shows on the broad one"""
POWERS = {"exponentformat": "power", "showgrid": True}
TIMED = {
    costs.EAGER: (OKABE_ITO[0], "circle"),
    costs.FUSED: (OKABE_ITO[5], "square"),
    costs.ELU: (OKABE_ITO[2], "diamond"),
}


def _time_attention(run: Run) -> Iterator[tuple[float, Timings | None]]:
    contenders = costs.attention_contenders(run.attention, run.trace.device)
    return time_side_by_side(contenders, run.trace.device, costs.measured_lengths(_size(run)))


def _size(run: Run) -> LayerSize:
    """Of the first layer of the chosen kind of attention."""
    return layer_sizes(run.trace, run.kind)[0]


AT_ATTENTION = OnRequest(
    MEASURE,
    "cost-time",
    _time_attention,
    lambda run: (run.trace.device, run.trace.checkpoint_hash, run.kind, run.layer, _size(run)),
    ALONE,
)


@view("Cost over n", code=(costs.attention_costs, costs.eager_attention, costs.elu_attention), on_request=AT_ATTENTION)
def cost_over_n(
    run: Run,
    n: int = menu("n, tokens", _counts(LENGTHS), 10_000, key="cost_n"),
    window: int = menu(
        "Sliding window",
        lambda run: _counts(sorted({*WINDOWS, *([run.attention.window] if run.attention.window else [])})),
        lambda run: run.attention.window or 256,
        key="cost_window",
    ),
    features: int = menu("Random features m", _counts(FEATURES), 256, key="cost_features"),
    memory: str = choice("Memory of", MEMORY, key="cost_memory"),
    width: int = choice("A number takes", BYTES, key="cost_bytes"),
    outcome: Timings | None = None,
) -> Result:
    """Multiply-adds and memory of all layers over n, counted, and the time of one layer, measured."""
    sizes, here = layer_sizes(run.trace, run.kind), len(run.attention.key_tokens)
    curves = costs.cost_over_n(run.trace, run.kind, sorted({here, *LENGTHS}), window, features)
    counted = costs.attention_costs(sizes, n, window, features)
    marked = {f"this run: {here:,}": here, f"n = {n:,}": n}
    bytes_title = f"bytes at {BYTES[width]}: {PARTS[memory]}"
    shows: dict[str, Any] = {
        "work": _cost_chart(curves, curves.multiply_adds, "multiply-adds", marked),
        "memory": _cost_chart(curves, width * getattr(curves, memory), bytes_title, marked),
        "table": _cost_table(counted, width),
    }
    facts = _compare(sizes, counted, features, width) | {"here": here}
    lengths = costs.measured_lengths(sizes[0])
    facts |= {"lengths": (lengths[0], lengths[-1]), "eager": in_units(8 * lengths[-1] ** 2)}
    if outcome:
        fits = {name: fit_power(outcome.lengths, seconds) for name, seconds in outcome.seconds.items()}
        longest = np.array(outcome.lengths[-FITTED:])
        lines = time_points(outcome, TIMED, dash="")
        for name, (factor, power) in fits.items():
            title = f"{name.partition(':')[0]} ~ n<sup>{power:.2f}</sup>"
            lines[title] = Line(longest, 1e3 * factor * longest**power, TIMED[name][0], dash="dash")
        shows["times"] = time_chart(outcome, lines)
        milliseconds = {f"{name}, ms": seconds * 1e3 for name, seconds in outcome.seconds.items()}
        shows["times-table"] = time_table(outcome.lengths, milliseconds)
        facts |= {"fitted": (longest[0], longest[-1]), "powers": {name: power for name, (_, power) in fits.items()}}
    return Result(shows, facts)


def _cost_chart(curves: costs.CostCurves, values: Array, title: str, marked: Mapping[str, int]) -> Lines:
    """Costs, (method, length), over n by method, both axes logarithmic.

    `marked` has n by the words beside its line; the first one is dotted.
    """
    ends = np.log10(curves.n[[0, -1]])
    # Whole powers of ten, and room for the words beside the marks.
    low, high = np.floor(np.log10(values.min())), np.ceil(np.log10(values.max()))
    marks = []
    for rank, ((words, length), dash) in enumerate(zip(marked.items(), ("dot", "solid"), strict=True)):
        right = np.log10(length) < ends.mean()
        side = {"xanchor": "left", "xshift": 4} if right else {"xanchor": "right", "xshift": -4}
        marks.append(Mark(x=length, text=words, dash=dash, at=side | {"y": 0.99 - 0.07 * rank}))
    lines = {
        name: Line(curves.n, line, colour, dash=dash, width=width)
        for (name, line), (colour, dash, width) in zip(zip(curves.methods, values, strict=True), METHODS, strict=False)
    }
    top = high + 0.2 * max(high - low, 1)
    return Lines(
        lines,
        ("n, tokens (log)", f"{title} (log)"),
        ",.0f",
        height=350,
        marks=marks,
        log="xy",
        layout={
            "margin": {"t": 110},
            "xaxis": {"dtick": 1, "range": list(ends)} | POWERS,
            "yaxis": {"dtick": 3 if high - low > 5 else 1, "range": [low, top]} | POWERS,
        },
    )


def _cost_table(counted: Mapping[str, costs.Cost], width: int) -> pd.DataFrame:
    """Exact counts as text, since some exceed what a browser's numbers hold."""
    columns = {
        "multiply-adds": [cost.multiply_adds for cost in counted.values()],
        "scores, bytes": [width * cost.scores for cost in counted.values()],
        "KV cache or state, bytes": [width * cost.cache for cost in counted.values()],
        "parameters, bytes": [width * cost.parameters for cost in counted.values()],
        "together, bytes": [width * cost.memory for cost in counted.values()],
    }
    return pd.DataFrame(
        {"attention": [say_label(name) for name in counted]}
        | {name: [f"{value:,}" for value in values] for name, values in columns.items()}
    )


def _compare(
    sizes: Sequence[LayerSize], counted: Mapping[str, costs.Cost], features: int, width: int
) -> dict[str, Any]:
    """Facts about who needs less than whom, and from where on."""
    full, linear = counted[costs.FULL], counted[costs.LINEAR]
    pairs = sum(size.heads * (size.d_k + size.d_v) for size in sizes)
    return {
        "ratio": full.multiply_adds / linear.multiply_adds,
        "even": costs.even_length(sizes, features),
        "larger": sum(size.parameters for size in sizes) // pairs,
        "scores": in_units(width * full.scores),
        "cache": in_units(width * full.cache),
        "state": in_units(width * linear.cache),
        "size": sizes[0],
        "layers": len(sizes),
        "alike": len(set(sizes)) == 1,
        "shared": costs.shared_heads(sizes[0]),
        "flash_tile": costs.FLASH_TILE,
    }


def in_units(count: int) -> Sentence | Numeral:
    """Bytes with a unit, powers of 1,000."""
    power = min(max(len(str(count)) - 1, 0) // 3, 5)
    if not power:
        return sentence("{count} bytes", count=count)
    return Numeral(f"{count / 1000**power:.3g} {('kB', 'MB', 'GB', 'TB', 'PB')[power - 1]}")


@answer
def one_line(run: Run) -> Result:
    """How many scores a head has here, and would have in a text of 4,096 tokens."""
    return Result(facts={"here": run.attention.pattern[0].size, "long": 4096**2})
