"""Every head of every layer at once, for the mosaic component: the run's own weights in 16 bits each.

A weight up to 1 is off by less than 0.00001, far less than one of the 256 colours; hovering shows four decimals.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from viz.drawing import Drawing
from viz.theme import WEIGHTS, colour_scales

Array = np.ndarray

MOST_GROUPS = 3
MOST_CELLS = 8_000_000
"""16 MB: a browser should not be sent more for one picture"""
LARGEST_CODE = 2**16 - 1
"""0 is a masked cell; the codes from 1 to this are weights from 0 to the largest"""
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
    """plain-text label of each query, without its position (viz.tokens.labels or decoder_names)"""
    keys: Sequence[str]
    """plain-text label of each key"""
    allowed: Array | None = None
    """bool, broadcast to the shape of weights: False is hatched, whatever the number"""
    averaged: bool = False
    """whether there is one table per layer, the mean over its heads"""
    pool: int = 1
    """how many queries and keys each cell stands for, of whose weights it is the largest"""

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
    chosen: tuple[str, int, int] | None = None,
    *,
    high: float | None = 1.0,
    measure: str = "attention weight",
    title: str = "Attention heads",
    opens: str = "",
) -> Drawing:
    """The picture (Drawing.pack): uint16 (layers, heads, query, key) of each group.

    Code 0 is a masked cell, code c the weight (c - 1) * unit; the header has the unit.

    Args:
        groups: one to three, drawn one below the other: rows are layers, columns heads.
        chosen: kind, layer and head to outline, if they are in one of the groups.
        high: the colours go from 0 to this in all groups; None: to the largest weight.
        measure: what the numbers are, for the legend and the tooltip.
        title: the name of the saved picture, with the checkpoint.
        opens: class of the page's element that shows the chosen head; a click scrolls it into view.

    Raises:
        ValueError: no group or too many, too many cells, negative or too large numbers.
    """
    _check(groups, high)
    weights = [_masked(group) for group in groups]
    largest = max(_largest(group, values) for group, values in zip(groups, weights, strict=True))
    unit = (largest or 1.0) / (LARGEST_CODE - 1)
    header = {
        "groups": [_description(*each) for each in zip(groups, weights, strict=True)],
        "unit": unit,
        "chosen": list(chosen) if chosen else None,
        "high": (largest or 1.0) if high is None else float(high),
        "largest": largest,
        "measure": measure,
        "title": title,
        "opens": opens,
        "scale": colour_scales()[WEIGHTS],
    }
    return Drawing.pack("mosaic", header, [encode_weights(values, unit) for values in weights])


def _check(groups: Sequence[Group], high: float | None) -> None:
    if not 1 <= len(groups) <= MOST_GROUPS:
        raise ValueError(f"A mosaic has 1 to {MOST_GROUPS} kinds of attention, not {len(groups)}.")
    cells = sum(np.size(group.weights) for group in groups)
    if cells > MOST_CELLS:
        raise ValueError(f"These heads have {cells:,} cells, more than {MOST_CELLS:,}: draw fewer kinds or layers.")
    if high is not None and not high > 0:
        raise ValueError(f"The colours go from 0 to a positive number, not to {high}.")


def _masked(group: Group) -> Array:
    """float32 like the weights, NaN where a cell is masked."""
    weights = np.asarray(group.weights, dtype=np.float32)
    return weights if group.allowed is None else np.where(group.allowed, weights, np.float32(np.nan))


def _largest(group: Group, weights: Array) -> float:
    lowest, highest = (float(each.reduce(weights, axis=None, initial=0)) for each in (np.fmin, np.fmax))
    if lowest < 0 or highest > LARGEST:
        raise ValueError(
            f"{group.title} has numbers from {lowest:.4g} to {highest:.4g}; a mosaic draws 0 to {LARGEST:,.0f}."
        )
    return highest


def encode_weights(weights: Array, unit: float) -> Array:
    """Codes of the weights; NaN is masked."""
    codes = weights * np.float32(1 / unit) + np.float32(1.5)
    return np.nan_to_num(codes, copy=False, nan=0.0).astype("<u2")


def _description(group: Group, weights: Array) -> dict:
    layers, heads = weights.shape[:2]
    return {
        "kind": group.kind,
        "title": group.title,
        "layers": layers,
        "heads": heads,
        "averaged": group.averaged,
        "pool": group.pool,
        "queries": list(group.queries),
        "keys": list(group.keys),
        "masked": bool(np.isnan(weights).any()),
    }
