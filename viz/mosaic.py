"""Every head of every layer at once, as the payload of the mosaic component: the run's own weights, in bytes.

Weights travel as float16, which holds each to within 0.05 % of itself; so what hovering says has three digits.
"""

import json
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
"""sixteen megabytes: more than that no browser should be sent for one picture"""
MASKED = 0xFFFF
"""the two bytes of a masked cell; as float16 they are a NaN, and no weight has them"""
LARGEST = float(np.finfo(np.float16).max)


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

    Weights are little-endian float16 in the order layer, head, query, key; a masked cell has MASKED instead. The header
    says at which byte after it each group starts.

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
    chunks = [_halves(group) for group in groups]
    largest = max(float(np.nanmax(_weights(chunk), initial=0)) for chunk in chunks)
    offsets = np.cumsum([0, *(chunk.nbytes for chunk in chunks[:-1])])
    header = {
        "groups": [_described(*pair) for pair in zip(groups, offsets, strict=True)],
        "chosen": list(chosen) if chosen else None,
        "high": (largest or 1.0) if high is None else float(high),
        "largest": largest,
        "measure": measure,
        "title": title,
        "scale": WEIGHTS,
        "scales": colour_scales(),
    }
    return packed(header, chunks)


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


def _halves(group: Group) -> Array:
    """uint16 (layers, heads, query, key): the bits of float16, or MASKED."""
    weights = np.asarray(group.weights, dtype=np.float32)
    masked = np.isnan(weights)
    if group.allowed is not None:
        masked |= ~np.broadcast_to(group.allowed, weights.shape)
    seen = np.where(masked, np.float32(0), weights)
    if seen.min() < 0 or seen.max() > LARGEST:
        raise ValueError(
            f"{group.title} has numbers from {seen.min():.4g} to {seen.max():.4g}; a mosaic draws 0 to {LARGEST:.0f}."
        )
    # Adding 0 makes a negative zero positive: the component orders numbers by their bits.
    bits = (seen + np.float32(0)).astype("<f2").view("<u2")
    return np.where(masked, np.uint16(MASKED), bits).astype("<u2")


def _weights(halves: Array) -> Array:
    return np.where(halves == MASKED, np.uint16(0), halves).astype("<u2").view("<f2")


def _described(group: Group, offset: int) -> dict:
    layers, heads = np.shape(group.weights)[:2]
    return {
        "kind": group.kind,
        "title": group.title,
        "layers": layers,
        "heads": heads,
        "averaged": group.averaged,
        "queries": list(group.queries),
        "keys": list(group.keys),
        "offset": int(offset),
    }
