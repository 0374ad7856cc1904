"""Positional encoding: what the model adds to its embeddings or does in its attention, and runs without it."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from model.analysis.heads.softmax import mask_orders
from model.analysis.positions import position_table, word_order
from model.analysis.positions.rotation import extend_angles, rotate_pairs, rotated_head, shifted_scores, with_rope
from model.analysis.positions.score_bias import biased_head
from model.analysis.stream import vocabulary
from model.language import Numeral, later, series, tr
from model.network.embedding import InputEmbedding, sinusoids
from model.network.masks import alibi_bias, alibi_slopes
from model.network.rotary import rotate, rotation
from model.run import Run
from model.trace import Array, Attention
from pages.views import Need, Part, Result, answer, view
from pages.views.chosen_token import query_of, row_in
from pages.views.controls import choice, menu, number, several, slider, text
from pages.views.shared import axes, input_titles, score_by_offset
from viz.forms import Bars, Line, Lines, Map, Maps, Mark, Scale, Texts
from viz.labels import say_label, say_options
from viz.latex import error_text, signed
from viz.special.position_waves import block_equation, block_map, clock_chart, wave_chart
from viz.special.positional_encoding import (
    PositionMap,
    VectorMaps,
    dimension_formulas,
    dimension_name,
    end_of_text,
    positions_text,
)
from viz.theme import GUIDE, OKABE_ITO, symmetric_range
from viz.tokens import labels, numbered, visible, word

STACKS = {"source": "encoder", "target": "decoder"}
FIELDS = {"rope": "rotary", "bias": "bias"}
"""what attention may do for positions -> where a trace has it"""
LONGEST_TABLE = 512
"""positions; more rows than that are thinner than a pixel"""
FIRST_POSITIONS = 64
"""rows that are drawn at first"""
ROUNDING = 1e-4
"""largest relative difference that counts as rounding in single precision"""
BELOW_ROWS = 380
"""pixels of a picture below two rows of controls"""
BAND = "rgba(140,140,140,0.4)"
NOTHING = 0, -1
"""limits of a control that is not offered"""


def _adds(run: Run) -> bool:
    """True if the model adds a table to its embeddings; some of Hugging Face order their sines differently."""
    return Need.ADDED_POSITIONS in run.opened.features or run.opened.config.positions == "sinusoidal"


def _scheme(run: Run) -> str:
    """What the model does for positions: "added", "rope" or "bias"; "none": none of these could be read."""
    if _adds(run):
        return "added"
    return next((name for name, field in FIELDS.items() if _attention_with(run, field)), "none")


def _attention_with(run: Run, field: str) -> Attention | None:
    """The chosen attention if its `field` is set, else the first of the run, which may have it in some layers only."""
    places = sorted(run.trace.attentions, key=lambda place: (place[0] != run.attention.kind, place))
    attentions = (run.attention, *(run.trace.attention(*place) for place in places))
    return next((attention for attention in attentions if getattr(attention, field) is not None), None)


def _follows_formula(run: Run) -> bool:
    """True if its table is one of sines and cosines in the paper's order of dimensions."""
    return Need.ADDED_POSITIONS in run.opened.features and run.opened.config.positions == "sinusoidal"


def _can_reorder(run: Run) -> bool:
    if len(run.trace.streams) > 1:
        return Need.OWN_LAYERS in run.opened.features
    return Need.LOGITS in run.opened.features


ADDED = Part("a table of positions that is added to the embeddings", _adds)
SINES = Part("added sines and cosines in the paper's order", _follows_formula)
ROTATES = Part("attention that rotates queries and keys", lambda run: _scheme(run) == "rope")
BIASED = Part("attention that adds a bias to its scores", lambda run: _scheme(run) == "bias")
PERIODIC = Part("sines and cosines", lambda run: _follows_formula(run) or _scheme(run) == "rope")
ENCODED = Part("positions that could be read", lambda run: _scheme(run) != "none")
REORDERED = Part("logits of one stack, or layers of this project's own code", _can_reorder)


def _sides(run: Run) -> list[str]:
    return [side for side, stack in STACKS.items() if stack in run.trace.streams]


def _table(run: Run, side: str | None) -> Array:
    """(max_len, d_model): what is added for each position of one side; None: the only or the first one."""
    return run.opened.positional_encoding(side or _sides(run)[0])


def _place(run: Run, field: str) -> tuple[Attention, int]:
    """The chosen head, or where its attention does not have `field`, one that has."""
    attention = _attention_with(run, field)
    return attention, min(run.head, attention.n_heads - 1)


def _most_positions(run: Run) -> tuple[int, int]:
    match _scheme(run):
        case "added":
            return 2, len(_table(run, None))
        case "rope":
            length = len(_place(run, "rotary")[0].key_tokens)
            return 2, max(min(run.opened.config.max_len, LONGEST_TABLE), length, 3)
    return NOTHING


def _dimensions(run: Run) -> tuple[int, int]:
    return (2, _table(run, None).shape[1]) if _adds(run) else NOTHING


def _changing(run: Run) -> int:
    """The dimensions that complete at least a tenth of a wave over the positions that are drawn at first."""
    most = _dimensions(run)[1]
    if not _follows_formula(run):
        return most
    return max(2 * int((position_table.wavelengths(most) <= 10 * FIRST_POSITIONS).sum()), 2)


OFF = {"encoder": "Encoder", "both": later("Encoder and decoder")}


def _words(run: Run) -> tuple[tuple[int, ...], ...]:
    """Positions of the pieces of each word that can move."""
    if len(run.trace.streams) == 1:
        return word_order.word_positions(run.trace)
    return word_order.source_words(run.trace.src_tokens)


def _orders(run: Run) -> tuple[str, ...]:
    """Examples of a typed order, of two stacks: none, and all words in reverse."""
    reverse = " ".join(map(str, range(len(_words(run)))[::-1]))
    return ("", reverse) if len(run.trace.streams) == 2 and len(_words(run)) > 1 else ()


SEED = number("Seed", (0, 9999), 1, key="pe_seed")
ORDER = text("… or type an order", _orders, key="pe_order")
LEFT_OUT = choice(
    "Positions left out of",
    lambda run: say_options(OFF) if _adds(run) and len(run.trace.streams) == 2 else {},
    key="pe_off",
)


@view(
    "Word order",
    code=(word_order.without_positions, word_order.run_both_orders, word_order.reorder_words),
    needs=(REORDERED,),
)
def order(run: Run, seed: int = SEED, typed: str | None = ORDER, left_out: str | None = LEFT_OUT) -> Result:
    """The same words in another order; where positions are added, also without them."""
    facts = {"stacks": len(run.trace.streams), "count": len(_words(run)), "next_seed": (seed + 1) % 10_000}
    if facts["stacks"] == 1:
        return _one_stack(run, seed, facts)
    tokens = run.trace.src_tokens
    spoken = ["".join(visible(word(tokens[i])) for i in part) for part in _words(run)]
    facts["words"] = ", ".join(f"{number} {text}" for number, text in enumerate(spoken))
    if len(spoken) < 2:
        return Result(facts=facts)
    places = _read_order(typed, len(spoken))
    facts["refused"] = bool(typed.strip()) and places is None
    permutation = word_order.reorder(tokens, places or word_order.shuffle_words(len(spoken), seed))
    return _both_orders(run, permutation, left_out, facts)


def _read_order(typed: str, count: int) -> tuple[int, ...] | None:
    """Numbers separated by spaces or commas; None unless they name each word exactly once."""
    parts = [part for part in re.split(r"[\s,，、]+", typed) if part]
    if not all(part.isascii() and part.isdigit() and len(part) < 5 for part in parts):
        return None
    places = tuple(map(int, parts))
    return places if sorted(places) == list(range(count)) else None


def _both_orders(run: Run, permutation: tuple[int, ...], left_out: str | None, facts: dict[str, Any]) -> Result:
    """Both orders through a translator, with positions and without, as far as the model has both."""
    trained = WITHOUT if run.opened.config.positions == "none" else WITH
    ways: dict[str, tuple[str, ...]] = {trained: ()}
    if left_out:
        ways = {WITH: (), WITHOUT: word_order.SIDES[left_out]}
    case, place = (run.opened, run.trace, permutation), (run.kind, run.layer)
    runs = {way: run.compute(word_order.run_both_orders, *case, off, place) for way, off in ways.items()}
    texts = {way: run.compute(word_order.translate_both_orders, *case, off) for way, off in ways.items()}
    sources = run.trace.source, word_order.reordered_text(*case)
    titles = {"original": "Original order", "other": "Other order"}
    shows: dict[str, Any] = {
        name: Texts(
            {f"{titles[name]}: the encoder reads": sources[i]}
            | {f"Translation {way}": pair[i] for way, pair in texts.items()}
        )
        for i, name in enumerate(titles)
    }
    errors = {"encoder output of the same token": "memory_error", "cross-attention outputs": "cross_error"}
    errors |= {"logits": "logits_error"}
    numbers = {name: np.array([getattr(pair, name) for pair in runs.values()]) for name in errors.values()}
    written = {WITH: lambda error: signed(error, ".3g"), WITHOUT: error_text}
    table = {way: [tr(written[way](numbers[name][i])) for name in errors.values()] for i, way in enumerate(runs)}
    shows["checks"] = pd.DataFrame({"largest difference": list(errors)} | table)
    if WITH in runs:
        shows["moved"] = _moved(run.trace.src_tokens, runs)
    shows["order-weights"] = _order_weights(run, runs, permutation)
    way, (first, second) = list(texts.items())[-1]
    return Result(
        shows,
        facts
        | {
            "ways": list(ways),
            "way": way,
            "same": first == second,
            "off": OFF[left_out].lower() if left_out else "",
            "source_free": run.trace.kind(run.kind).keys == "decoder" and run.layer == 0,
        },
        numbers
        | {f"memory_{name}": np.stack([pair.memory[i] for pair in runs.values()]) for i, name in enumerate(titles)},
    )


def _moved(tokens: tuple[str, ...], runs: Mapping[str, word_order.OrderRun]) -> Bars:
    """How far each token's encoder output moved when the words changed places, relative to its length."""
    looks = ({"color": OKABE_ITO[0]}, {"color": OKABE_ITO[5], "pattern": {"shape": "/"}})
    return Bars(
        numbered(tokens),
        {way: pair.moved for way, pair in runs.items()},
        ("token", "change ÷ length"),
        colours=looks,
        number=".3g",
        height=320,
        layout={"yaxis": {"rangemode": "tozero"}},
    )


def _order_weights(run: Run, runs: Mapping[str, word_order.OrderRun], permutation: tuple[int, ...]) -> Maps:
    """The head's weights in both orders; those of the other one are sorted back into the original order."""
    back = np.argsort(permutation)
    kind, attention, maps = run.trace.kind(run.kind), run.attention, {}
    for way, pair in runs.items():
        own, other = (weights[run.head] for weights in pair.weights)
        other = other[back] if kind.queries == "encoder" else other
        other = other[:, back] if kind.keys == "encoder" else other
        maps |= {f"Original, {way}": own, f"Other, {way}": other}
    mask = attention.mask[run.head]
    return Maps(*axes(attention), {title: Map(weights, mask) for title, weights in maps.items()}, across=2)


def _one_stack(run: Run, seed: int, facts: dict[str, Any]) -> Result:
    """The same words in another order through a model of one stack: how much the logits of each token change."""
    if facts["count"] < 2:
        return Result(facts=facts)
    (stream,) = run.trace.streams.values()
    after = run.compute(word_order.reorder_words, run.opened, run.trace, seed)
    largest, size = after.logits_change.max(), np.abs(run.trace.logits).max()
    names, titles = stream.tokens.labels, ("token, in its own order", "largest change of a logit")
    bars = Bars(
        numbered(names),
        {"change": after.logits_change},
        titles,
        number=".3g",
        height=320,
        layout={"yaxis": {"rangemode": "tozero"}},
    )
    return Result(
        {"order": bars},
        facts
        | {
            "other": "".join(names[i] for i in after.order).replace("▁", " "),
            "largest": largest,
            "size": size,
            "same": largest <= ROUNDING * size,
            "positions": run.opened.config.positions,
        },
        {"order": np.array(after.order)},
    )


POSITIONS = slider("Positions", _most_positions, FIRST_POSITIONS, key="positions")
DIMENSIONS = slider("Dimensions", _dimensions, _changing, key="dimensions")
SIDE = choice(
    "Sentence",
    lambda run: (
        say_options({side: side.capitalize() for side in _sides(run)}) if _adds(run) and len(_sides(run)) > 1 else {}
    ),
    key="side",
)
ANGLES = {"cos": "Cosine", "sin": "Sine"}
ANGLE = choice("Show", lambda run: say_options(ANGLES) if _scheme(run) == "rope" else {}, key="pe_angle")


@view("The encoding", code=(sinusoids, InputEmbedding, rotation, rotate, alibi_slopes, alibi_bias))
def positions(
    run: Run,
    rows: int | None = POSITIONS,
    columns: int | None = DIMENSIONS,
    side: str | None = SIDE,
    angle: str | None = ANGLE,
) -> Result:
    """The added table, RoPE's angles, or the biases of all heads; else the weights of a head beside equal ones."""
    match _scheme(run):
        case "added":
            return _added(run, rows, columns, side)
        case "rope":
            return _angles(run, rows, angle)
        case "bias":
            return _biases(run)
    return _unread(run)


def _added(run: Run, rows: int, columns: int, side: str | None) -> Result:
    """The table that the model adds to its embeddings."""
    encoding, config, sines = _table(run, side), run.opened.config, _follows_formula(run)
    table = encoding[:rows, :columns]
    length = len(run.trace.streams[STACKS[side or _sides(run)[0]]].embedded.sum)
    waves = position_table.wavelengths(encoding.shape[1]) if sines else None
    picture = PositionMap(
        values=table,
        limits=(-1.0, 1.0) if sines else symmetric_range(encoding),
        title="dimension",
        columns=[dimension_name(j, not sines) for j in range(table.shape[1])],
        explained=dimension_formulas(table.shape[1], waves),
        halves=("Sines: even dimensions", "Cosines: odd dimensions") if sines else None,
        marks=end_of_text(length, len(table), "your sentence"),
    )
    facts = {"learned": config.positions == "learned", "sines": sines, "d_model": config.d_model}
    facts |= {"factor": run.opened.embedding_scale, "types": Need.ADDED_TYPES in run.opened.features}
    facts |= {"stacks": len(run.trace.streams), "columns": columns}
    facts["wave"] = waves[columns // 2] if waves is not None and columns < encoding.shape[1] else None
    return Result({"table": picture}, {"scheme": "added"} | facts)


def _shown_instead(run: Run, attention: Attention, head: int) -> dict[str, Any]:
    """Facts about the head that is shown, and whether it is another one than the sidebar's."""
    elsewhere = "" if attention is run.attention else run.trace.kind(attention.kind).title.lower()
    return {"attention": attention, "head": head, "elsewhere": elsewhere}


def _angles(run: Run, rows: int, angle: str) -> Result:
    """Cosines or sines of the angles by which RoPE rotates: the run's own, and below them their continuation."""
    attention, head = _place(run, "rotary")
    rotary, length = attention.rotary, len(attention.key_tokens)
    waves = rotated_head(run.trace, attention.kind, attention.layer, head).wavelength
    values, used = getattr(extend_angles(rotary, np.arange(rows)), angle), min(rows, length)
    values[:used] = getattr(rotary, angle)[:used]
    limit = max(1.0, float(np.abs(values).max()))
    picture = PositionMap(
        values=values,
        limits=(-limit, limit),
        title="pair i of dimensions",
        what=angle,
        columns=[f"{angle} {i}" for i in range(len(waves))],
        explained=[say_label(f"pair {i}, wavelength {positions_text(wave)}") for i, wave in enumerate(waves)],
        marks=end_of_text(length, rows, "your text"),
    )
    facts = {"scheme": "rope", "called": ANGLES[angle].lower(), "pairs": len(waves)}
    return Result({"angles": picture}, facts | _shown_instead(run, attention, head))


def _head_lines(x: Array, biases: Iterable[Array], head: int) -> dict[str, Line]:
    """A line for each head; that of the chosen one is wide."""
    colours = len(OKABE_ITO)
    return {
        f"head {i}": Line(
            x,
            bias,
            OKABE_ITO[i % colours],
            dash=("solid", "dash")[i // colours % 2],  # beyond the eight colours
            width=5 if i == head else 1.5,
        )
        for i, bias in enumerate(biases)
    }


def _biases(run: Run) -> Result:
    """What each head adds to its scores at each offset."""
    attention, head = _place(run, "bias")
    biased = biased_head(run.trace, attention.kind, attention.layer, head)
    picture = Lines(
        _head_lines(biased.offsets, biased.highest, head),
        ("offset, key minus query", "added to the scaled score"),
        height=420,
        layout={"yaxis": {"zeroline": False}},
    )
    slopes = biased.slopes
    facts = {
        "scheme": "bias",
        "linear": biased.misfit <= ROUNDING * max(1.0, float(np.abs(biased.lowest).max())),
        "slopes": series([Numeral(f"{slope:.3g}") for slope in slopes], later("{before}; {one}")),
        "heads": len(slopes),
        "follows": np.allclose(slopes, alibi_slopes(len(slopes)).numpy(), rtol=1e-3),
    }
    numbers = {"lowest": biased.lowest, "slope": slopes}
    return Result({"bias": picture}, facts | _shown_instead(run, attention, head), numbers)


def _unread(run: Run) -> Result:
    """The weights of a head beside equal ones."""
    attention, head = run.attention, run.head
    mask, weights = attention.mask[head], attention.pattern[head]
    equal = mask / np.maximum(mask.sum(-1, keepdims=True), 1)
    maps = {"Attention weights": Map(weights, mask), "Equal weights": Map(equal, mask)}
    return Result(
        {"weights": Maps(*axes(attention), maps)}, {"scheme": "none", "positions": run.opened.config.positions}
    )


def _compared(
    attention: Attention, head: int, scores: Mapping[str, Array], weights: Mapping[str, Array], *more: Array
) -> tuple[Maps, Scale]:
    """Scores of a head in one range of colours, which also holds `more`; beside them attention weights."""
    mask = attention.mask[head]
    limit = symmetric_range(*(values[mask] for values in (*scores.values(), *more)))[1]
    scale = Scale(-limit, limit, title=f"score<br>±{signed(limit)}")
    maps = {title: Map(values, mask, scale, "score") for title, values in scores.items()}
    maps |= {title: Map(values, mask) for title, values in weights.items()}
    return Maps(*axes(attention), maps, layout={"height": BELOW_ROWS}), scale


@view("Your sentence", needs=(ADDED,))
def sentence(run: Run, side: str | None = SIDE) -> Result:
    """Embedding, positional encoding and their sum, for each token."""
    stream = run.trace.streams[STACKS[side or _sides(run)[0]]]
    embedded, opened = stream.embedded, run.opened
    titles, terms = input_titles(opened, embedded), embedded.terms
    norms = vocabulary.lengths(embedded)
    facts = {
        "scale": opened.embedding_scale,
        "types": Need.ADDED_TYPES in opened.features,
        "limit": symmetric_range(*terms.values())[1],
        "norms": {name: (norms[name].min(), norms[name].max()) for name in ("embedding", "positional")},
        "off": np.abs(embedded.embedding + embedded.positional - embedded.sum).max(),
    }
    maps = {titles[name]: values for name, values in terms.items()}
    return Result({"sum": VectorMaps(maps=maps, tokens=stream.tokens.labels)}, facts)


@view("Rotation of q and k", code=(rotated_head,), needs=(ROTATES,))
def head_rotation(run: Run) -> Result:
    """Queries and keys of a head before RoPE rotates them, and after."""
    attention, head = _place(run, "rotary")
    after = rotated_head(run.trace, attention.kind, attention.layer, head)
    maps = {"q before": after.q_before, "q rotated": after.q, "k before": after.k_before, "k rotated": after.k}
    facts = {
        "limit": symmetric_range(*maps.values())[1],
        "off": after.rotation_error,
        "size": max(np.abs(after.q).max(), np.abs(after.k).max()),
    }
    numbers = {"cos": after.cos, "sin": after.sin}
    picture = VectorMaps(maps=maps, tokens=attention.key_tokens)
    return Result({"rotated": picture}, facts | _shown_instead(run, attention, head), numbers)


@view("Scores", code=(biased_head,), needs=(BIASED,))
def scores(run: Run) -> Result:
    """Scores and weights of a head without its bias and with it, and the bias."""
    attention, head = _place(run, "bias")
    biased = biased_head(run.trace, attention.kind, attention.layer, head)
    before_softmax = {"Scores without the bias": biased.without, "Scores of the run, with it": biased.pre_softmax}
    weights = {"Weights without the bias": biased.pattern_without, "Attention weights of the run": biased.pattern}
    maps, scale = _compared(attention, head, before_softmax, weights, biased.bias)
    bias = Maps(*axes(attention), {"": Map(biased.bias, attention.mask[head], scale, "bias")})
    facts = {"limit": scale.high} | _shown_instead(run, attention, head)
    return Result({"bias-scores": maps, "bias-map": bias}, facts)


def _waves(run: Run) -> dict[int, str]:
    width = _table(run, None).shape[1] if _follows_formula(run) else 0
    return {dimension: dimension_name(dimension) for dimension in range(width)}


WAVES = several(
    "Dimensions to draw as waves",
    _waves,
    lambda run: [len(_waves(run)) * part // 32 * 2 for part in (1, 3, 5, 7)],
    8,
    key="waves",
)
PERIODS = {"type": "log", "tickformat": ",", "zeroline": False}


@view("Wavelengths", code=(position_table.wavelengths_in,), needs=(PERIODIC,))
def wavelengths(
    run: Run, side: str | None = SIDE, rows: int | None = POSITIONS, waves: list[int] | None = WAVES
) -> Result:
    """How many positions each pair of dimensions needs for one period; some dimensions of a table as waves."""
    if _scheme(run) == "rope":
        return _rotary_wavelengths(run)
    encoding = _table(run, side)
    formula, measured = position_table.wavelengths(encoding.shape[1]), position_table.wavelengths_in(encoding)
    pairs, levels = np.arange(len(formula)), {"2π": 2 * math.pi, "10000 · 2π": 2 * math.pi * 10_000}
    levels |= {f"length of the table: {len(encoding)}": len(encoding)}
    lines = {"formula": Line(pairs, formula, GUIDE, width=1.5)}
    lines |= {"the model's table": Line(pairs, measured, GUIDE, "circle", "", size=5)}
    for dimension, colour in zip(waves, OKABE_ITO, strict=False):
        pair = [dimension // 2]
        lines[dimension_name(dimension)] = Line(pair, measured[pair], colour, "circle", "", size=12)
    picture = Lines(
        lines,
        ("pair i (dimensions 2i and 2i+1)", "wavelength, positions (log)"),
        height=380,
        marks=[
            Mark(y=level, text=name, at={"y": math.log10(level), "x": 0.01, "xanchor": "left"})
            for name, level in levels.items()
        ],
        layout={"yaxis": PERIODS | {"range": [0.6, 5.1], "dtick": 1, "exponentformat": "none"}},
    )
    facts = {
        "scheme": "added",
        "off": np.abs(measured / formula - 1).max(),
        "slow": int((formula > len(encoding)).sum()),
        "pairs": len(formula),
        "length": len(encoding),
    }
    shows = {"wavelengths": picture, "waves": wave_chart(encoding[:rows], formula, waves)}
    numbers = {"waves": encoding[:rows, waves], "waves_dimension": np.array(waves, int), "encoding": encoding}
    return Result(shows, facts, numbers)


def _rotary_wavelengths(run: Run) -> Result:
    attention, head = _place(run, "rotary")
    length = len(attention.key_tokens)
    waves = rotated_head(run.trace, attention.kind, attention.layer, head).wavelength
    pairs, turning = np.arange(len(waves)), np.isfinite(waves)
    lines = {
        "measured in this run": Line(pairs[turning], waves[turning], OKABE_ITO[0], "circle", ""),
        f"length of your text: {length}": Line([0, len(pairs) - 1], [length] * 2, GUIDE, dash="dot"),
    }
    titles = "pair i of dimensions", "wavelength, positions (log)"
    facts = {"scheme": "rope", "slow": int((waves > length).sum()), "pairs": len(waves), "length": length}
    return Result({"wavelengths": Lines(lines, titles, height=380, layout={"yaxis": PERIODS})}, facts)


MEASURES = {"dot": "Dot product", "cosine": "Cosine"}


def _origins(run: Run, side: str | None) -> tuple[int, int]:
    return (0, len(_table(run, side)) - 1) if _adds(run) else NOTHING


def _rotary_axes(run: Run) -> tuple[list[str], list[str]]:
    """Names of the queries and keys that RoPE rotates."""
    return axes(_place(run, "rotary")[0]) if _scheme(run) == "rope" else ([], [])


MEASURE = choice("Similarity", lambda run: say_options(MEASURES) if _adds(run) else {}, key="measure")
ORIGIN = slider("From position", _origins, lambda run, side: (_origins(run, side)[1] + 1) // 2, key="from")
QUERY = menu(
    "Query",
    lambda run: dict(enumerate(_rotary_axes(run)[0])),
    lambda run: min(query_of(run), len(_rotary_axes(run)[0]) - 1),
    key="pe_query",
    follows=True,
)
KEY = menu(
    "Key",
    lambda run: dict(enumerate(_rotary_axes(run)[1])),
    lambda run: min(1, len(_rotary_axes(run)[1]) - 1),
    key="pe_key",
)
SHIFTS = 0, 512
SHIFT = slider(
    "Shift every position by s", lambda run: SHIFTS if _scheme(run) == "rope" else NOTHING, 100, key="pe_shift"
)


@view("Distance", code=(position_table.similarity, rotate_pairs, shifted_scores), needs=(ENCODED,))
def distance(
    run: Run,
    side: str | None = SIDE,
    rows: int | None = POSITIONS,
    measure: str | None = MEASURE,
    origin: int | None = ORIGIN,
    query: int | None = QUERY,
    key: int | None = KEY,
    shift: int | None = SHIFT,
) -> Result:
    """A measure of how far what the model does for positions depends on their distance alone."""
    match _scheme(run):
        case "added":
            return _similarities(run, _table(run, side), rows, measure, origin)
        case "rope":
            return _rotary_distance(run, query, key, shift)
    attention, head = _place(run, "bias")
    biased = biased_head(run.trace, attention.kind, attention.layer, head)
    spread = float((biased.highest - biased.lowest).max())
    facts = {"scheme": "bias", "only": spread <= ROUNDING * np.abs(biased.bias).max(), "spread": spread}
    table = pd.DataFrame({"head": range(len(biased.slopes)), "slope m, measured": biased.slopes})
    return Result({"slopes": table}, facts)


def _similarities(run: Run, encoding: Array, rows: int, measure: str, origin: int) -> Result:
    """How similar every two positions of the table are, and one position to all others by their distance."""
    similar = run.compute(position_table.similarity, encoding, measure == "cosine")
    lowest, highest = position_table.similarity_by_offset(similar)
    limit, name = 1.0 if measure == "cosine" else float(np.abs(similar).max()), MEASURES[measure]
    offsets = np.arange(len(similar)) - origin
    low, high = (values[abs(offsets)] for values in (lowest, highest))
    lines = {
        "all positions, lowest to highest": Line(offsets, similar[origin], between=(low, high)),
        # Wide, so that they are visible around the curve where lowest and highest are equal.
        "lowest": Line(offsets, low, BAND, width=5),
        "highest": Line(offsets, high, BAND, width=5),
        f"position {origin}": Line(offsets, similar[origin], width=1.5),
    }
    return Result(
        {
            "similarity": PositionMap(
                values=similar[:rows, :rows], limits=(-limit, limit), title="position", what=name, height=430
            ),
            "similarity-curve": Lines(lines, ("offset k", name), height=430),
        },
        {
            "scheme": "added",
            "learned": run.opened.config.positions == "learned",
            "called": name,
            "origin": origin,
            "spread": (highest - lowest).max(),
        },
        {"lowest": lowest, "highest": highest},
    )


def _rotary_distance(run: Run, query: int, key: int, shift: int) -> Result:
    """The score of one query and one key of the run at other distances, and all scores with the text shifted."""
    attention, head = _place(run, "rotary")
    pairs, scores = rotate_pairs(attention, head, query, key), attention.scores[head]
    size = np.abs(scores).max()
    off = np.abs(shifted_scores(attention, head, shift) - scores).max()
    facts = {"scheme": "rope", "only": off <= ROUNDING * size, "shift": shift, "count": scores.size}
    picture = score_by_offset(pairs.offsets, pairs.scores, pairs.unrotated_score, key - query)
    return Result({"rotary-offsets": picture}, facts | {"off": off, "size": size})


def _half_length(run: Run, side: str | None) -> int:
    return len(_table(run, side)) // 2


def _pairs(run: Run) -> int:
    return len(_waves(run)) // 2


def _evenly_spaced(pairs: int, count: int = 6) -> list[int]:
    """At most `count` pairs from the first to the last."""
    return sorted({round(at) for at in np.linspace(0, pairs - 1, min(count, pairs))})


START = slider("Position pos", lambda run, side: (0, _half_length(run, side) - 1), 5, key="pos")
OFFSET = slider("Offset k", lambda run, side: (1, _half_length(run, side)), 10, key="offset")
PAIR = slider("Pair i", lambda run: (0, _pairs(run) - 1), lambda run: _pairs(run) // 8, key="pair")
PAIRS = several(
    "Pairs of dimensions to draw as well",
    lambda run: range(_pairs(run)),
    lambda run: _evenly_spaced(_pairs(run)),
    7,
    key="pe_pairs",
)


@view("Rotation", code=(position_table.rotate,), needs=(SINES,))
def table_rotation(
    run: Run,
    side: str | None = SIDE,
    start: int = START,
    offset: int = OFFSET,
    pair: int = PAIR,
    pairs: Sequence[int] = PAIRS,
) -> Result:
    """PE(pos + k) = M_k PE(pos): clock hands, the blocks of M_k, one of them in numbers, and the largest error."""
    encoding, k, shown = _table(run, side), offset, sorted({*pairs, pair})
    blocks, predicted = position_table.rotation_blocks(encoding, k), position_table.rotate(encoding, k)
    errors, waves = np.abs(predicted - encoding[k:]), position_table.wavelengths(encoding.shape[1])
    rows = {f"PE({start})": encoding[start], f"PE({start + k})": encoding[start + k]}
    both = slice(2 * pair, 2 * pair + 2)
    table = pd.DataFrame(
        {
            "pair": shown,
            "wavelength": [positions_text(waves[i]) for i in shown],
            "rotation": [f"{360 * k / waves[i]:,.4g}°" for i in shown],
            "largest error": errors.max(axis=0).reshape(-1, 2).max(axis=1)[shown],
        }
    )
    table.attrs["floats"] = "%.1e"
    return Result(
        {
            "clocks": clock_chart(rows, {f"M<sub>{k}</sub> PE({start})": predicted[start]}, shown, pair, waves),
            "blocks": block_map(blocks[shown], shown, k),
            "pairs": table,
        },
        {
            "offset": k,
            "lengths": encoding.shape,
            "off": errors.max(),
            "pairs": len(waves),
            "equation": block_equation(blocks[pair], encoding[start, both], encoding[start + k, both], start, k, pair),
        },
        {"blocks": blocks, "predicted": predicted},
    )


SCHEMES = {"learned": later("Learned table"), "rope": "RoPE", "alibi": "ALiBi"}


def _other_schemes(run: Run) -> dict[str, str]:
    """Those that the chosen attention does not have itself."""
    own = {"rope": run.attention.rotary, "alibi": run.attention.bias}
    return say_options({name: title for name, title in SCHEMES.items() if own.get(name) is None})


def _rotatable(run: Run, scheme: str) -> bool:
    return scheme == "rope" and not run.attention.crosses and run.attention.d_k % 2 == 0


SCHEME = choice(
    "Compare the sinusoids with",
    _other_schemes,
    lambda run: "rope" if "rope" in _other_schemes(run) else "learned",
    key="pe_scheme",
)


def _has_learned_table(run: Run, scheme: str) -> bool:
    return scheme == "learned" == run.opened.config.positions


OF_TABLE = choice(
    "Sentence", lambda run, scheme: SIDE.options(run) if _has_learned_table(run, scheme) else {}, key="side"
)
ROWS_OF_TABLE = slider(
    "Positions",
    lambda run, scheme: _most_positions(run) if _has_learned_table(run, scheme) else NOTHING,
    FIRST_POSITIONS,
    key="positions",
)
ROTATED_QUERY = menu(
    "Query",
    lambda run, scheme: dict(enumerate(axes(run.attention)[0])) if _rotatable(run, scheme) else {},
    query_of,
    key="pe_query",
    follows=True,
)
ROTATED_KEY = menu(
    "Key",
    lambda run, scheme: dict(enumerate(axes(run.attention)[1])) if _rotatable(run, scheme) else {},
    lambda run: min(1, len(run.attention.key_tokens) - 1),
    key="pe_key",
)
WHOLE_SHIFT = slider(
    "Shift every position by s",
    lambda run, scheme: SHIFTS if _rotatable(run, scheme) else NOTHING,
    100,
    key="pe_shift",
)


@view("Learned, RoPE, ALiBi", code=(with_rope,), needs=(Need.ADDED_POSITIONS,))
def schemes(
    run: Run,
    scheme: str = SCHEME,
    side: str | None = OF_TABLE,
    rows: int | None = ROWS_OF_TABLE,
    query: int | None = ROTATED_QUERY,
    key: int | None = ROTATED_KEY,
    shift: int | None = WHOLE_SHIFT,
) -> Result:
    """The added table compared with three other schemes, on this head's own numbers."""
    config, attention = run.opened.config, run.attention
    learned = config.positions == "learned"
    facts = {"learned": learned, "scheme": scheme, "called": tr(SCHEMES[scheme]), "odd": bool(attention.d_k % 2)}
    facts |= {"max_len": config.max_len, "d_model": config.d_model}
    if scheme == "learned":
        if not learned:
            return Result(facts=facts, lacks=Need.LEARNED_POSITIONS)
        table = _table(run, side)[:rows]
        paper = sinusoids(*table.shape).numpy()
        maps = {"learned by this model": table, "sinusoids of the paper": paper}
        return Result({"beside": VectorMaps(maps=maps)}, facts)
    if attention.crosses or (scheme == "rope" and not _rotatable(run, scheme)):
        return Result(facts=facts)
    shows, more, numbers = _with_rope(run, query, key, shift) if scheme == "rope" else _with_alibi(run)
    return Result(shows, facts | more, numbers)


def _weights_of(attention: Attention, head: int, pre_softmax: Array) -> Array:
    """(query, key): attention weights of a head, if its softmax read these scores."""
    return mask_orders(pre_softmax, attention.mask[head], float(attention.temperature[head])).before


def _with_rope(run: Run, query: int, key: int, shift: int) -> tuple[dict, dict, dict]:
    """The head's own q and k, rotated by their positions: pictures, facts and arrays."""
    attention, head = run.attention, run.head
    plain, rotated = attention.scores[head], with_rope(attention)
    after, moved = (shifted_scores(rotated, head, by) for by in (0, shift))
    weights = _weights_of(attention, head, after * attention.scale)
    maps, scale = _compared(
        attention,
        head,
        {"Scores q · k": plain, "Scores after RoPE": after},
        {"Attention weights": attention.pattern[head], "Weights after RoPE": weights},
    )
    pairs = rotate_pairs(rotated, head, query, key)
    facts = {
        "limit": scale.high,
        "shift": shift,
        "count": plain.size,
        "off": np.abs(moved - after).max(),
        "size": np.abs(after).max(),
    }
    curve = score_by_offset(pairs.offsets, pairs.scores, pairs.unrotated_score, key - query)
    return {"rope": maps, "rope-offsets": curve}, facts, {}


def _with_alibi(run: Run) -> tuple[dict, dict, dict]:
    """A penalty that grows with distance, on the head's own scaled scores: pictures, facts and arrays."""
    attention, head = run.attention, run.head
    scaled, mask = attention.pre_softmax[head], attention.mask[head]
    slopes = alibi_slopes(attention.n_heads).numpy()
    bias = alibi_bias(attention.n_heads, *scaled.shape)[0, head].numpy()
    weights = _weights_of(attention, head, scaled + bias)
    maps, scale = _compared(
        attention,
        head,
        {"Scaled scores": scaled, "Scores − m |i − j|": scaled + bias},
        {"Attention weights": attention.pattern[head], "Weights with ALiBi": weights},
        bias,
    )
    steps = np.arange(max(bias.shape))
    lines = Lines(
        _head_lines(steps, -slopes[:, None] * steps, head),
        ("distance |i − j|", "added to the scaled score"),
        height=340,
        layout={"yaxis": {"zeroline": False}},
    )
    bias_map = Maps(*axes(attention), {"": Map(bias, mask, scale, "bias")})
    shows = {"alibi": maps, "alibi-bias": bias_map, "alibi-heads": lines}
    return shows, {"limit": scale.high, "slope": slopes[head], "heads": attention.n_heads}, {"slope": slopes}


WITH, WITHOUT = "with positions", "without positions"


@answer
def one_line(run: Run) -> Result:
    """How long the vector is that the position adds to the chosen token; or by what else the model knows."""
    stream, attention = run.stream, run.attention
    row = row_in(run, stream.name)
    embedded = stream.embedded
    rows = embedded.rows or tuple(range(len(stream.tokens)))
    place = rows.index(row) if row in rows else 0
    added, word = (float(np.linalg.norm(part[place])) for part in (embedded.positional, embedded.embedding))
    by = "rope" if attention.rotary is not None else "bias" if attention.bias is not None else ""
    token = labels(stream.tokens.labels)[row if row in rows else rows[0]]
    return Result(facts={"token": token, "added": added, "word": word, "by": by, "tokens": len(stream.tokens)})
