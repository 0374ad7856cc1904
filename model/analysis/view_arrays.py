"""The arrays that views export, by name: a page calls these functions, and the Python that it exports does too."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from model.analysis.residual_stream import measure_stream, residual_stream
from model.checkpoints.masked_model import MaskedModel
from model.trace import Array, Attention, Trace


def head_arrays(attention: Attention, head: int, names: Sequence[str]) -> dict[str, Array]:
    """Fields of one head of an attention, such as mask, scores, scaled and pattern."""
    return {name: getattr(attention, name)[head] for name in names}


def alignment_weights(trace: Trace, layer: int, head: int | None) -> Array:
    """(query, key): weights of a head, or the mean over the layer's heads, in attention of the `aligning_kind`."""
    pattern = trace.attention(aligning_kind(trace), layer).pattern
    return pattern.mean(axis=0) if head is None else pattern[head]


def aligning_kind(trace: Trace) -> str:
    """The kind of attention that relates what is written to what was given: cross-attention, else self-attention."""
    return next((kind.name for kind in trace.kinds if kind.crosses), trace.kinds[-1].name)


def fill_arrays(opened: MaskedModel, trace: Trace) -> dict[str, Array]:
    """Positions of the hidden tokens, the tokens that fill them, and the probabilities of the vocabulary there."""
    read = trace.streams["encoder"].tokens.ids
    places = [position for position, token in enumerate(read) if token == opened.tokenizer.mask]
    ids = np.array([trace.next_ids[place] for place in places], dtype=int)
    return {"positions": np.array(places, dtype=int), "filled": ids, "probabilities": trace.probabilities[places]}


def stream_arrays(trace: Trace, stack: str, measures: Sequence[str]) -> dict[str, Array]:
    """The residual stream of the encoder or decoder, and measures of it by name."""
    found = measure_stream(trace, stack)
    return {"stream": residual_stream(trace, stack), **{name: getattr(found, name) for name in measures}}


def arrays_of(*results: Any, **named: Any) -> dict[str, Array]:
    """What functions returned, as arrays by name.

    Mappings and dataclasses become an array a value, named as their keys and fields; so do sequences whose values
    differ in shape, by number. Of an iterator that yields what it knows so far, the last result counts.

    Args:
        *results: their arrays keep their names; one that is a single array or number is called "values".
        **named: their arrays' names begin with this name.
    """
    arrays: dict[str, Array] = {}
    for name, result in (*(("", result) for result in results), *named.items()):
        arrays |= _flat(name, result)
    return arrays


def _flat(name: str, value: Any) -> dict[str, Array]:
    if isinstance(value, Iterator):
        *_, value = value
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    elif isinstance(value, list | tuple) and not _is_regular(value):
        value = dict(enumerate(value))
    if isinstance(value, Mapping):
        return {
            k: v for key, part in value.items() for k, v in _flat(f"{name}_{key}" if name else str(key), part).items()
        }
    return {} if value is None else {name or "values": np.asarray(value)}


def _is_regular(values: Sequence[Any]) -> bool:
    """Whether the values fit in one array of numbers, truth values or texts."""
    try:
        return np.asarray(values).dtype.kind in "biufU"
    except ValueError:
        return False
