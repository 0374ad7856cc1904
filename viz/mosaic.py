"""Every head of every layer at once, as the payload of the mosaic component: the run's own weights, in bytes.

A weight travels as one byte, or two from 0.072 up: with four decimals below 0.02 and three above. That is finer than
the 256 colours, and what hovering says; the page's CSV and NPZ hold the tensors themselves.
"""

import json
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from viz.matrices import colour_scales
from viz.theme import WEIGHTS

Array = np.ndarray
Place = tuple[str, int, int]
"""kind, layer and head of one attention head"""

MOST_GROUPS = 3
MOST_CELLS = 8_000_000
"""eight to sixteen megabytes: more than that no browser should be sent for one picture"""
FINE = 200
"""steps of 0.0001 from 0 up to 0.02; those after them are of 0.001"""
ONE_BYTE = 252
"""steps below this are their byte; from here on the byte's excess over it is the high part of two bytes"""
LARGEST = 1e6


@dataclass(frozen=True)
class Group:
    """All heads of one kind of attention."""

    kind: str
    """encoder_self, decoder_self or cross: what a click reports"""
    title: str
    """on screen: "Encoder self-attention" """
    weights: Array
    """(layers, heads, query, key), none negative; NaN is masked"""
    queries: Sequence[str]
    """plain-text label of each query, without its position (viz.tokens.labels or decoder_rows)"""
    keys: Sequence[str]
    """plain-text label of each key"""
    allowed: Array | None = None
    """bool, to be broadcast to the shape of weights: False is hatched, whatever the number"""
    averaged: bool = False
    """whether the one table a layer stands for all its heads together"""

    def __post_init__(self) -> None:
        shape = np.shape(self.weights)
        labelled = (len(self.queries), len(self.keys))
        if len(shape) != 4 or shape[2:] != labelled:
            raise ValueError(
                f"{self.title} has weights of shape {shape}; it needs (layers, heads, query, key), and its labels "
                f"name {labelled[0]} queries and {labelled[1]} keys."
            )
        if 0 in shape:
            raise ValueError(f"{self.title} has weights of shape {shape}: there is nothing to draw.")


def mosaic(
    groups: Sequence[Group],
    chosen: Place | None = None,
    *,
    high: float | None = 1.0,
    measure: str = "attention weight",
    title: str = "Attention heads",
) -> bytes:
    """The payload: four bytes with the header's length, the header as JSON, then each group's weights.

    A group has a byte a cell in the order layer, head, query, key; the second bytes of the cells that have two; and, if
    anything is masked, a bit a cell. The header says how long each part is, and in which power of ten cells count.

    Args:
        groups: one to three, drawn one below the other: rows are layers, columns heads.
        chosen: the head to outline, if it is among them.
        high: the colours go from 0 to this, in all groups; None: to the largest of all numbers.
        measure: what the numbers are, for the colour bar and for what hovering says.
        title: what the picture is called when it is saved: name the checkpoint here.

    Raises:
        ValueError: no group or too many, too many cells, negative or too large numbers.
    """
    _check(groups, high)
    seen = [_seen(group) for group in groups]
    power = _power(largest := max(float(values.max()) for values, _ in seen))
    chunks = [(*_bytes(values, power), _mask_bits(masked)) for values, masked in seen]
    header = {
        "groups": [_described(*pair) for pair in zip(groups, chunks, strict=True)],
        "power": power,
        "chosen": list(chosen) if chosen else None,
        "high": (largest or 1.0) if high is None else float(high),
        "largest": largest,
        "measure": measure,
        "title": title,
        "scale": WEIGHTS,
        "scales": colour_scales(),
    }
    return packed(header, [part for chunk in chunks for part in chunk])


def _power(largest: float) -> int:
    """The power of ten in which numbers up to `largest` are counted."""
    # A softmax's largest may be 1.0000001: no reason to count in tens.
    return max(math.ceil(math.log10(largest) - 0.03), 0) if largest else 0


def _check(groups: Sequence[Group], high: float | None) -> None:
    if not 1 <= len(groups) <= MOST_GROUPS:
        raise ValueError(f"A mosaic has 1 to {MOST_GROUPS} kinds of attention, not {len(groups)}.")
    cells = sum(np.size(group.weights) for group in groups)
    if cells > MOST_CELLS:
        raise ValueError(f"These heads have {cells:,} cells, more than {MOST_CELLS:,}: draw fewer kinds or layers.")
    if high is not None and not high > 0:
        raise ValueError(f"The colours go from 0 to a positive number, not to {high}.")


def packed(header: dict, arrays: Sequence[Array]) -> bytes:
    """Four bytes with the header's length, the header as JSON to a multiple of four bytes, then the arrays' bytes."""
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 4)
    return struct.pack("<I", len(text)) + text + b"".join(array.tobytes() for array in arrays)


def _seen(group: Group) -> tuple[Array, Array]:
    """float32 (layers, heads, query, key), 0 where masked; bool of the same shape, True is masked."""
    weights = np.asarray(group.weights, dtype=np.float32)
    masked = np.isnan(weights)
    if group.allowed is not None:
        masked |= ~np.broadcast_to(group.allowed, weights.shape)
    seen = np.where(masked, np.float32(0), weights)
    if seen.min() < 0 or seen.max() > LARGEST:
        raise ValueError(
            f"{group.title} has numbers from {seen.min():.4g} to {seen.max():.4g}; a mosaic draws 0 to {LARGEST:,.0f}."
        )
    return seen, masked


def steps(values: Array, power: int = 0) -> Array:
    """uint16 of the shape of `values`: how many steps each is from 0, in units of 10 ** power, rounded.

    n = min(10,000 w, 180 + 1,000 w), whose two sides meet at w = 0.02, n = 200.
    """
    fine = values * np.float32(10.0 ** (4 - power))
    coarse = fine * np.float32(0.1)
    coarse += np.float32(180)
    np.minimum(fine, coarse, out=fine)
    return np.rint(fine, out=fine).astype("<u2")


def _bytes(values: Array, power: int) -> tuple[Array, Array]:
    """uint8 (layers, heads, query, key), and uint8 (cells with two bytes,)."""
    counted = steps(values, power)
    long = counted >= ONE_BYTE
    beyond = counted[long] - ONE_BYTE
    first = counted.astype(np.uint8)
    first[long] = ONE_BYTE + (beyond >> 8)
    return first, (beyond & 0xFF).astype(np.uint8)


def _mask_bits(masked: Array) -> Array:
    """uint8: a bit a cell, 1 is masked; none if no cell is."""
    return np.packbits(masked, bitorder="little") if masked.any() else np.zeros(0, np.uint8)


def _described(group: Group, parts: tuple[Array, Array, Array]) -> dict:
    layers, heads = np.shape(group.weights)[:2]
    return {
        "kind": group.kind,
        "title": group.title,
        "layers": layers,
        "heads": heads,
        "averaged": group.averaged,
        "queries": list(group.queries),
        "keys": list(group.keys),
        "bytes": [part.size for part in parts],
    }
