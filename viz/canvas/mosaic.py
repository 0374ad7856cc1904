"""Every head of every layer at once, as the payload of the mosaic component: the run's own weights, to three decimals.

A weight travels as half a byte if it is below 0.0145, as most are, and as one or two bytes more otherwise; a masked
cell as nothing. That is finer than the 256 colours, and what hovering says; the page's CSV and NPZ hold the tensors
themselves. Few bytes matter: moving a slider takes as long as they do.
"""

import json
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from viz.canvas.matrices import colour_scales
from viz.theme import WEIGHTS

Array = np.ndarray
Place = tuple[str, int, int]
"""kind, layer and head of one attention head"""

MOST_GROUPS = 3
MOST_CELLS = 8_000_000
"""four to twenty megabytes: more than that no browser should be sent for one picture"""
HALF_BYTE = 15
"""thousandths below this are their half byte; from here on a byte holds their excess over it"""
ONE_BYTE = 252
"""an excess below this is its byte; from here on the byte's own excess over it is the high part of two bytes"""
CHUNK = 1 << 16
"""cells that are worked on at once: few enough to stay in the processor's cache; even"""
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

    A group has, in the order layer, head, query, key: half a byte for each cell that is not masked, the low half first;
    the next byte of those that have one; the last of those that have two; and a bit a cell if any are masked, of one
    head where all have the same mask. The header says how many of each, and in which power of ten thousandths count.

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
    power = _power(largest := max(highest for *_, highest in seen))
    chunks = [(*_packed(values, power), _bits(masked)) for values, masked, _ in seen]
    header = {
        "groups": [_described(*each) for each in zip(groups, chunks, [masked for _, masked, _ in seen], strict=True)],
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


def _seen(group: Group) -> tuple[Array, Array, float]:
    """float32 (cells that are not masked,); bool, True is masked: (query, key) if all heads' masks are the same,
    otherwise of the shape of the weights, and empty if nothing is masked; the largest number."""
    weights = np.asarray(group.weights, dtype=np.float32)
    masked = _masked(weights, group.allowed)
    if masked.ndim == 2:
        values = weights.reshape(-1, masked.size).take(np.flatnonzero(~masked), axis=1).reshape(-1)
    else:
        values = weights[~masked] if masked.size else weights.reshape(-1)
    lowest, highest = values.min(initial=0), float(values.max(initial=0))
    if lowest < 0 or highest > LARGEST:
        raise ValueError(
            f"{group.title} has numbers from {lowest:.4g} to {highest:.4g}; a mosaic draws 0 to {LARGEST:,.0f}."
        )
    return values, masked, highest


def _masked(weights: Array, allowed: Array | None) -> Array:
    hidden = None if allowed is None or np.all(allowed) else ~_of_one_head(np.broadcast_to(allowed, weights.shape))
    if np.isnan(weights.min()):
        missing = np.isnan(weights)
        return _of_one_head(missing if hidden is None else missing | hidden)
    return np.zeros(0, bool) if hidden is None else hidden


def _of_one_head(cells: Array) -> Array:
    """(query, key) if all heads have the same, otherwise `cells` themselves: (layers, heads, query, key)."""
    heads = cells.reshape(-1, cells[0, 0].size)
    return cells[0, 0] if (heads == heads[0]).all() else cells


def thousandths(values: Array, power: int = 0) -> Array:
    """uint16 of the shape of `values`: how many thousandths each is, in units of 10 ** power, rounded."""
    return _counted(values, power).astype("<u2")


def _counted(values: Array, power: int) -> Array:
    """float32: the numbers whose whole parts are the thousandths."""
    counted = values * np.float32(10.0 ** (3 - power))
    counted += np.float32(0.5)
    return counted


def _packed(values: Array, power: int) -> tuple[Array, Array, Array]:
    """uint8: two cells a byte; the bytes of cells from HALF_BYTE on; those of cells from HALF_BYTE + ONE_BYTE on."""
    chunks = [_packed_chunk(values[start : start + CHUNK], power) for start in range(0, values.size, CHUNK)]
    return tuple(map(np.concatenate, zip(*chunks, strict=True))) if chunks else (np.zeros(0, np.uint8),) * 3


def _packed_chunk(values: Array, power: int) -> tuple[Array, Array, Array]:
    # The least is found among floats, and places before numbers: two fifths less time than among integers, by a mask.
    counted = _counted(values, power)
    half = np.zeros(-(-counted.size // 2) * 2, np.uint8)
    half[: counted.size] = np.minimum(counted, np.float32(HALF_BYTE))
    excess = counted.take(np.flatnonzero(half == HALF_BYTE)).astype("<u2") - HALF_BYTE
    long = excess >= ONE_BYTE
    beyond = excess[long] - ONE_BYTE
    excess[long] = ONE_BYTE + (beyond >> 8)
    pairs = half.view("<u2")
    return (pairs | pairs >> 4).astype(np.uint8), excess.astype(np.uint8), (beyond & 0xFF).astype(np.uint8)


def _bits(masked: Array) -> Array:
    return np.packbits(masked, bitorder="little")


def _described(group: Group, parts: Sequence[Array], masked: Array) -> dict:
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
        "masks": masked.size,
    }
