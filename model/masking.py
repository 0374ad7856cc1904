"""The mask before the softmax, and after it; and what looks ahead where the causal mask is lifted.

Plain numpy on the numbers of a run, in the run's own precision.
"""

from dataclasses import dataclass

import numpy as np

from model.trace import Array


@dataclass(frozen=True)
class MaskOrders:
    """The weights of the same scores with the mask in three places, (..., key) each."""

    before: Array
    """masked scores are -inf in the softmax: what the paper does"""
    after: Array
    """softmax of all scores, then masked weights set to 0"""
    renormalised: Array
    """`after`, divided by its sum; 0 where every weight of `after` was too small for the precision"""


def mask_orders(scaled: Array, mask: Array, tau: float = 1.0) -> MaskOrders:
    """Mask before the softmax, after it, and after it with the rows brought back to 1.

    Args:
        scaled: (..., key), scores / sqrt(d_k).
        mask: bool (..., key), True = may look.
        tau: temperature of the softmax.
    """
    logits = scaled / scaled.dtype.type(tau)
    after = np.where(mask, _softmax(logits), 0).astype(scaled.dtype)
    total = after.sum(axis=-1, keepdims=True)
    renormalised = np.divide(after, total, out=np.zeros_like(after), where=total > 0)
    return MaskOrders(_softmax(np.where(mask, logits, -np.inf)), after, renormalised)


def future_mass(pattern: Array) -> Array:
    """(..., query, key) -> (..., query): the weight that each query puts on the keys after its own position."""
    return np.triu(pattern, 1).sum(axis=-1)


def moved_mass(before: Array, after: Array) -> Array:
    """(..., token) each -> (...): the share of probability that went from some tokens to others, 0 to 1."""
    return np.abs(after - before).sum(axis=-1) / 2


def _softmax(logits: Array) -> Array:
    """A row in which all is -inf becomes zeros, as in the model."""
    highest = logits.max(axis=-1, keepdims=True, initial=np.finfo(logits.dtype).min)
    powers = np.exp(logits - highest)
    total = powers.sum(axis=-1, keepdims=True)
    return np.divide(powers, total, out=np.zeros_like(powers), where=total > 0)
