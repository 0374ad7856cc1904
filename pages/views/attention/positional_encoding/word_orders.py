"""The same words in another order, with positions and without."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from model.analysis.positions import word_order
from model.language import later, tr
from model.run import Run
from pages.views import Result, view
from pages.views.attention.positional_encoding.scheme import REORDERED, ROUNDING, adds_table
from pages.views.controls import choice, number, text
from pages.views.shared import axes
from viz.forms import Bars, Map, Maps, Texts
from viz.labels import say_options
from viz.latex import error_text, signed
from viz.theme import OKABE_ITO
from viz.tokens import numbered, visible, word

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
    lambda run: say_options(OFF) if adds_table(run) and len(run.trace.streams) == 2 else {},
    key="pe_off",
)


@view(
    "Word order",
    code=(word_order.without_positions, word_order.run_both_orders, word_order.reorder_words),
    needs=(REORDERED,),
)
def order(run: Run, seed: int = SEED, typed: str | None = ORDER, left_out: str | None = LEFT_OUT) -> Result:
    """The same words in another order; where positions are added, also without them."""
    facts = {"count": len(_words(run)), "next_seed": (seed + 1) % 10_000}
    if len(run.trace.streams) == 1:
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
        },
        {"order": np.array(after.order)},
    )


WITH, WITHOUT = "with positions", "without positions"
