"""Figure 1 of the paper, alive, for the whole_model component: every box of a model and a token's way.

The words about a box are templates: `{out}` is its value of that name at the chosen token, `{weight:%}` the same as a
percentage, `{key:token}` the token at that position, `{head:int}` a whole number.
"""

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from model.language import tr
from viz.activations import activation
from viz.drawing import Coded, Drawing, named
from viz.labels import say_label
from viz.theme import DECODER, ENCODER, WEIGHTS, Array, colour_scales
from viz.tokens import labels

MOST_CELLS = 24
"""along each side of a head in miniature; of more tokens a cell shows the largest weight of several"""


@cache
def parts() -> Mapping[str, Mapping[str, str]]:
    """Part -> its name, a short one for phones where it has one, and its colour."""
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


@dataclass(frozen=True)
class StackRow:
    """A stack's text."""

    name: str
    """encoder or decoder"""
    title: str
    """on screen: "Encoder" """
    tokens: Sequence[str]
    """pieces that it reads"""
    predicts: Sequence[str] | None = None
    """pieces that its rows should predict"""
    candidates: Sequence[Sequence[tuple[str, float]]] = ()
    """for each row the most probable tokens with their probabilities"""


@dataclass(frozen=True)
class Switched:
    """What is switched off, and log p of the text in nats."""

    before: float
    """with everything on"""
    after: float
    """with the switches as they are"""
    off: Mapping[str, Sequence[str]]
    """name of each box that is switched -> its switches that are off: off, residual"""
    changes: Sequence[str]
    """the same as texts, in the order in which they were switched"""
    alone: Mapping[str, float]
    """with one box off, by "name switch", as far as it was computed"""


@dataclass(frozen=True)
class About:
    """What is said about a box besides its numbers, and what can be done with it."""

    purpose: str
    """what it is for, in a sentence"""
    page: str
    """title of the page that explains it"""
    opens: Mapping[str, Any]
    """what the picture answers to open that page; `:position` and `:head` in it are those of the chosen token"""
    switches: Mapping[str, str]
    """its switches, and the text of each, of which a list is the answer"""


def whole_model(
    boxes: Sequence[Any],
    rows: Sequence[StackRow],
    chosen: tuple[str, Mapping[str, int]],
    *,
    about: Mapping[str, About],
    switched: Switched,
    memory: float | None = None,
    counts: bool = False,
    title: str = "The whole model",
) -> Drawing:
    """The picture; it takes `values` of each box, (name, position), and of attentions `pattern`, coded, NaN if masked.

    Args:
        boxes: in the order in which a token goes through them: `name`, `stack`, `layer`, `part`, `sublayer`, `values`,
            `matrices`, `parameters`, `shared`, `multiply_adds`, `pattern`, `facts` and `beside` each.
        rows: the stacks' texts.
        chosen: name of the box, and each stack's position.
        about: what is said about each box, by its name.
        switched: what is off.
        memory: mean length of the vectors that the encoder hands to the decoder; None: there is no memory.
        counts: whether a box says at first how many parameters it has, in place of a length.
        title: the name of the saved picture.

    Raises:
        ValueError: values that do not fit the tokens.
    """
    arrays: dict[str, Array | Coded] = {}
    described = []
    sizes = {row.name: len(row.tokens) for row in rows}
    for box in boxes:
        values = np.array([box.values[name] for name in box.values], dtype="<f4")
        if values.shape != (len(box.values), sizes[box.stack]):
            raise ValueError(f"{box.name} has values of shape {values.shape} for {sizes[box.stack]} tokens.")
        arrays[named(box.name, "values")] = values
        described.append(_describe(box) | vars(about[box.name]))
        if box.pattern is not None:
            arrays[_path_of_pattern(box)] = Coded(pooled(box.pattern), bits=8)
    header = {
        "title": title,
        "boxes": described,
        "rows": [_row(row) for row in rows],
        "chosen": {"box": chosen[0], "positions": dict(chosen[1])},
        "memory": memory,
        "counts": counts,
        **vars(switched),
        "stacks": {"encoder": ENCODER, "decoder": DECODER},
        "scale": colour_scales()[WEIGHTS],
    }
    return Drawing.pack("whole_model", header, arrays)


def pooled(pattern: Array) -> Array:
    """(heads, query, key) -> at most MOST_CELLS along each side, the largest of each block; NaN only if all are."""
    for axis in (1, 2):
        size = pattern.shape[axis]
        starts = np.arange(min(size, MOST_CELLS)) * size // min(size, MOST_CELLS)
        pattern = np.fmax.reduceat(pattern, starts, axis=axis)
    return pattern


def words_about(box: Any) -> list[tuple[str, str]]:
    """What happens to a token in the box: formulas with the numbers before and after, as templates."""
    facts, norm = box.facts, box.facts.get("norm", "")
    match box.part:
        case "embedding":
            scaled = [(tr("times √d_model"), f"{{in}} · {facts['scale']:g} = {{out}}")] if facts["scale"] != 1 else []
            return [(tr("row of E"), tr("length {in}")), *scaled]
        case "positions":
            return [(tr("embedding + position"), tr("lengths {in} and {added} → {out}"))]
        case "self_attn" | "cross_attn":
            return _attention_words(box)
        case "feed_forward":
            return _feed_forward_words(facts)
        case "norm" | "norm_first" | "norm_after":
            read = tr("{norm} of the layer’s input", norm=norm) if box.beside else norm
            return [(read, tr("length {in} → {out}"))]
        case "add":
            return [(tr("x + sub-layer"), tr("lengths {residual} and {update} → {out}"))]
        case "add_norm":
            added = tr("lengths {residual} and {update} → {added}")
            return [(tr("x + sub-layer"), added), (norm, tr("length {added} → {out}"))]
        case "output":
            return [
                ("x · W_U", tr("length {in} → {vocabulary} logits")),
                (tr("largest logit"), tr("{largest}; of the text’s token {text}")),
            ]
    return [
        (tr("most probable"), "{out:%}"),
        (tr("the text’s token"), "{text:%}, log p {nats}"),
        (tr("entropy"), tr("{entropy:2} bits")),
    ]


def _attention_words(box: Any) -> list[tuple[str, str]]:
    heads, _, keys = box.pattern.shape
    crosses, facts = box.part == "cross_attn", box.facts
    reads = tr("memory") if crosses else "x"
    then = [tr("then normalised")] * bool(facts["normed"]) + [tr("then rotated (RoPE)")] * bool(facts["rotary"])
    # The script fills in what is in braces.
    lengths = tr("{keys} keys and values, lengths {k} and {v} on average").replace("{keys}", say_label(f"{keys:,}"))
    if facts["kv_heads"] != heads:
        lengths += "; " + tr("{kv} heads of them serve {heads} of queries", kv=facts["kv_heads"], heads=heads)
    scaled = f"q · k{_scaled(facts['scale'], facts['d_k'])}"
    capped = scaled if facts["softcap"] is None else f"cap({scaled})"
    read = capped + (f" + {tr('bias')}" if facts["bias"] else "")
    return [
        ("x · W_Q", ", ".join([tr("length {in} → {q}"), *then])),
        (f"{reads} · W_K, {reads} · W_V", lengths),
        (f"softmax({read})", tr("{entropy:2} bits; most, {weight:%}, on “{key:token}” in head {head:int}")),
        (tr("weights · v, joined"), tr("length {z}")),
        ("z · W_O", tr("length {z} → {out}")),
    ]


def _scaled(scale: float, d_k: int) -> str:
    if scale == 1:
        return ""
    return " / √dₖ" if math.isclose(scale, d_k**-0.5, rel_tol=1e-4) else f" · {scale:.3g}"


def _feed_forward_words(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    if not facts["d_ff"]:
        return [(tr("feed-forward(x)"), tr("length {in} → {out}; what is inside could not be read"))]
    matrix = "W_gate" if facts["gated"] else "W_1"
    first = activation(facts["activation"]).applied.format(f"x · {matrix}")
    active = tr("{active:int} of {d_ff} above 0").replace("{d_ff}", say_label(f"{facts['d_ff']:,}"))
    last = ("h · W_2", tr("length {hidden} → {out}"))
    if facts["gated"]:
        gated = tr("length {up} → {hidden}")
        return [(first, tr("length {in} → {gate}")), (tr("times x · W_1"), f"{gated}, {active}"), last]
    return [(first, f"{tr('length {in} → {hidden}')}, {active}"), last]


def _describe(box: Any) -> dict:
    part = parts()[box.part]
    named = {name: f"{name} {' × '.join(f'{size:,}' for size in shape)}" for name, shape in box.matrices.items()}
    vocabulary = say_label(f"{box.facts.get('vocabulary', 0):,}")
    found = {
        "name": box.name,
        "stack": box.stack,
        "layer": box.layer,
        "part": box.part,
        "sublayer": box.sublayer,
        "beside": box.beside,
        "title": part["title"],
        "short": part.get("short", part["title"]),
        "colour": part["colour"],
        "shape": say_label(", ".join(named.values())),
        "parameters": box.parameters,
        "shared": box.shared,
        "work": box.multiply_adds,
        "values": list(box.values),
        "words": [[name, text.replace("{vocabulary}", vocabulary)] for name, text in words_about(box)],
        "heads": None,
    }
    if box.pattern is not None:
        heads, queries, keys = box.pattern.shape
        cells = [min(queries, MOST_CELLS), min(keys, MOST_CELLS)]
        found["heads"] = {"count": heads, "queries": queries, "keys": keys, "cells": cells}
        found["heads"]["array"] = _path_of_pattern(box)
    return found


def _path_of_pattern(box: Any) -> str:
    """Of the weights in the model; of many tokens they are the largest of blocks, and the name says so."""
    of = f"{box.stack}.layers.{box.layer}.{box.part}"
    return (
        named(of, "pattern") if max(box.pattern.shape[1:]) <= MOST_CELLS else named(of, "largest of blocks of pattern")
    )


def _row(row: StackRow) -> dict:
    return {
        "name": row.name,
        "title": row.title,
        "tokens": labels(row.tokens),
        "predicts": labels(row.predicts) if row.predicts is not None else None,
        "candidates": [
            [[label, share] for label, share in zip(labels([t for t, _ in each]), (p for _, p in each), strict=True)]
            for each in row.candidates
        ],
    }
