"""Figures of Temperature: the live picture, one row at several temperatures, and its entropy."""

from collections.abc import Sequence
from typing import Any

from viz.drawing import Drawing, named
from viz.theme import WEIGHTS, colour_scales

AXES = {"query": {"title": "queries"}, "key": {"title": "keys"}}


def live_weights(
    attention: Any, head: int, names: tuple[Sequence[str], Sequence[str]], notes: Sequence[str], **header: Any
) -> Drawing:
    """For the temperature component: of a head it takes `pattern`, `mask`, and what the softmax reads.

    Args:
        attention: a model.trace.Attention.
        head: its number.
        names: of the queries and of the keys, plain text.
        notes: additions to the names of the queries where there is room, what a decoder row predicts; or empty.
        header: title; temperature, of the run; taus, those offered for a run; row, the chosen query; scope, in words;
            changes, how many others are at work in the run.
    """
    read = "scaled" if attention.reads_scaled else "pre_softmax"
    parts = {name: named("", name, "{head}") for name in ("pattern", "mask", read)}
    square = {"mask": parts["mask"], "rows": "query", "columns": "key"}
    weights = {"symbol": "weights", "array": parts["pattern"], "scale": WEIGHTS, "result": True}
    masked = {"symbol": "masked", "array": parts[read], "made": "masked"}
    header |= {"path": attention.path, "equations": [[weights | square, masked | square]], "axes": AXES}
    header |= {"facts": {"head": head}}
    header |= {"labels": dict(zip(AXES, names, strict=True)), "notes": {"query": notes}, "scales": colour_scales()}
    arrays = {named(attention.path, name, head): attention.array(name)[head] for name in parts}
    return Drawing.pack("temperature", header, arrays)
