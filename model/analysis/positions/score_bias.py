"""A bias of the scores that grows with distance: of each head by offset, and a head with it and without."""

from dataclasses import dataclass, replace

import numpy as np

from model.analysis.heads.softmax import mask_orders
from model.trace import Array, Trace


@dataclass(frozen=True)
class BiasedHead:
    """What a bias of the scores does to one head (Press et al. 2022; Raffel et al. 2020)."""

    offsets: Array
    """(offset,): key - query position, of the cells that the mask allows"""
    lowest: Array
    """(head, offset): the smallest bias at that offset"""
    highest: Array
    """(head, offset): the largest; equal to the smallest where the bias depends on the offset alone"""
    slopes: Array
    """(head,): m with bias = -m |key - query|, by least squares over the visible cells"""
    misfit: float
    """largest difference of the bias from -m |key - query| over all heads and visible cells"""
    bias: Array
    """(query, key): of this head"""
    without: Array
    """(query, key): this head's scores without the bias: scaled, then capped where the model caps them"""
    pre_softmax: Array
    """(query, key): with the bias, as the softmax read them"""
    pattern_without: Array
    """(query, key): attention weights recomputed without the bias"""
    pattern: Array
    """(query, key): attention weights of the run"""


def biased_head(trace: Trace, kind: str, layer: int, head: int) -> BiasedHead:
    """The bias of all heads by offset, and the scores and weights of one head with it and without.

    Raises:
        ValueError: the attention adds no bias.
    """
    attention = trace.attention(kind, layer)
    if attention.bias is None:
        raise ValueError(f"{attention.kind} of this model adds no bias to its scores")
    bias, visible = attention.bias.astype(np.float64), attention.mask.any(axis=0)
    offset = np.arange(bias.shape[2]) - np.arange(bias.shape[1])[:, None]
    offsets = np.unique(offset[visible])
    cells = [bias[:, visible & (offset == each)] for each in offsets]
    distance = np.abs(offset[visible])
    slopes = -(bias[:, visible] @ distance) / max((distance**2).sum(), 1)
    without = replace(attention, bias=None).pre_softmax[head]
    tau = float(attention.temperature[head])
    return BiasedHead(
        offsets=offsets,
        lowest=np.stack([each.min(axis=1) for each in cells], axis=1),
        highest=np.stack([each.max(axis=1) for each in cells], axis=1),
        slopes=slopes,
        misfit=float(np.abs(bias[:, visible] + slopes[:, None] * distance).max()),
        bias=attention.bias[head],
        without=without,
        pre_softmax=attention.pre_softmax[head],
        pattern_without=mask_orders(without, attention.mask[head], tau).before,
        pattern=attention.pattern[head],
    )
