"""Every head of every layer at once, for the mosaic component: the run's own weights in 16 bits each.

A weight up to 1 is off by less than 0.00001, far less than one of the 256 colours; hovering shows four decimals.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from viz.drawing import Coded, Drawing, named
from viz.theme import WEIGHTS, Array, colour_scales

MOST_GROUPS = 3
MOST_CELLS = 8_000_000
"""16 MB: a browser should not be sent more for one picture"""


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
    paths: Sequence[str] = ()
    """of the attention of each layer, such as decoder.layers.1.cross_attn; empty where the numbers are of none"""

    def __post_init__(self) -> None:
        shape = np.shape(self.weights)
        labelled = (len(self.queries), len(self.keys))
        if len(shape) != 4 or shape[2:] != labelled:
            raise ValueError(
                f"{self.title} has weights of shape {shape}; it needs (layers, heads, query, key), and its labels "
                f"name {labelled[0]} queries and {labelled[1]} keys."
            )
        if self.paths and len(self.paths) != shape[0]:
            raise ValueError(f"{self.title} has {shape[0]} layers and the paths {self.paths}.")
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
    """The picture; at each layer's path it takes `pattern`, coded, and `mask` where `allowed` is given.

    Both are (heads, query, key); a mask that all heads share may be (query, key).

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
    described = [_description(group, number) for number, group in enumerate(groups)]
    arrays: dict[str, Array | Coded] = {}
    for group, paths in zip(groups, (each["paths"] for each in described), strict=True):
        allowed = None if group.allowed is None else np.atleast_1d(group.allowed)
        for layer, path in enumerate(paths):
            arrays[named(path, "pattern")] = Coded(np.asarray(group.weights[layer], np.float32))
            if allowed is not None:
                arrays[named(path, "mask")] = allowed[layer] if allowed.ndim == 4 else allowed
    header = {
        "groups": described,
        "chosen": list(chosen) if chosen else None,
        "high": high,
        "measure": measure,
        "title": title,
        "opens": opens,
        "scale": colour_scales()[WEIGHTS],
    }
    return Drawing.pack("mosaic", header, arrays)


def _check(groups: Sequence[Group], high: float | None) -> None:
    if not 1 <= len(groups) <= MOST_GROUPS:
        raise ValueError(f"A mosaic has 1 to {MOST_GROUPS} kinds of attention, not {len(groups)}.")
    cells = sum(np.size(group.weights) for group in groups)
    if cells > MOST_CELLS:
        raise ValueError(f"These heads have {cells:,} cells, more than {MOST_CELLS:,}: draw fewer kinds or layers.")
    if high is not None and not high > 0:
        raise ValueError(f"The colours go from 0 to a positive number, not to {high}.")


def _description(group: Group, number: int) -> dict:
    layers, heads = np.shape(group.weights)[:2]
    return {
        "kind": group.kind,
        "title": group.title,
        "paths": list(group.paths) or [f"groups.{number}.{layer}" for layer in range(layers)],
        "layers": layers,
        "heads": heads,
        "averaged": group.averaged,
        "pool": group.pool,
        "queries": list(group.queries),
        "keys": list(group.keys),
        "masked": group.allowed is not None,
    }
