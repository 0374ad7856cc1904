"""The softmax of one attention at any temperature, its entropy, and why the paper divides by sqrt(d_k).

softmax(x / tau) as in Hinton, Vinyals, Dean (2015), section 2. Plain numpy, double precision, on the numbers of a run.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from model.trace import Array, Attention, Trace


def softmax_at(scaled: Array, mask: Array, tau: float) -> Array:
    """softmax(scaled / tau) over the keys that the mask allows; the rest gets 0, as does a row that allows none.

    Args:
        scaled: (..., key), scores / sqrt(d_k), before division by tau.
        mask: bool (..., key), True = may look.
        tau: above 0.

    Raises:
        ValueError: tau is not a number above 0.
    """
    if not tau > 0:
        raise ValueError(
            f"tau must be a number above 0, got {tau!r}; for the limits use one_hot_weights, uniform_weights"
        )
    # The highest score becomes 0 before the division, so a small tau can overflow to -inf only, never to inf.
    with np.errstate(over="ignore"):
        powers = np.exp((_seen(scaled, mask) - _highest(scaled, mask)) / tau)
    return _shared(powers)


def one_hot_weights(scaled: Array, mask: Array) -> Array:
    """The limit tau -> 0: 1 on the highest score that the mask allows; equal highest scores share it."""
    return _shared((_seen(scaled, mask) == _highest(scaled, mask)) & mask)


def uniform_weights(mask: Array) -> Array:
    """The limit tau -> infinity: the same weight on every key that the mask allows."""
    return _shared(mask)


def entropy(pattern: Array) -> Array:
    """(..., key) -> (...): -sum p ln p, in nats; 0 ln 0 = 0."""
    weights = pattern.astype(np.float64)
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    # Never below 0, and no -0 where all the weight lies on one key.
    return np.maximum(-(weights * logs).sum(axis=-1), 0.0)


def entropy_by_temperature(scaled: Array, mask: Array, taus: Sequence[float]) -> Array:
    """(tau, ...): the entropy of every row at each temperature, in nats; arguments as in `softmax_at`."""
    return np.stack([entropy(softmax_at(scaled, mask, tau)) for tau in taus])


def mean_entropy(trace: Trace) -> float:
    """The mean of all rows of all heads of all attentions of a run, in nats, each row with the same weight."""
    rows = [entropy(attention.pattern).ravel() for attention in trace.attentions.values()]
    return float(np.concatenate(rows).mean())


@dataclass(frozen=True)
class ProductStatistics:
    """What one head's q and k are like, and their products (paper, section 3.2.1, footnote 4)."""

    q_mean: float
    """of all components of all queries"""
    q_variance: float
    k_mean: float
    k_variance: float
    """of all components of all keys"""
    if_independent: float
    """the variance that q k would have were all components independent, of these means and variances"""
    variance: float
    """of the products q k that the mask allows"""
    scaled_variance: float
    """the same after division by sqrt(d_k): `variance` / d_k"""


def product_statistics(attention: Attention, head: int) -> ProductStatistics:
    """Measured on the run's own q, k and scores."""
    q, k = (side[head].astype(np.float64) for side in (attention.q, attention.k))
    q_mean, k_mean, q_variance, k_variance = q.mean(), k.mean(), q.var(), k.var()
    one = q_variance * k_variance + q_variance * k_mean**2 + k_variance * q_mean**2
    variance = attention.scores[head][attention.mask[head]].astype(np.float64).var()
    scaled = attention.scaled[head][attention.mask[head]].astype(np.float64).var()
    measured = (q_mean, q_variance, k_mean, k_variance, attention.d_k * one, variance, scaled)
    return ProductStatistics(*map(float, measured))


def _seen(scaled: Array, mask: Array) -> Array:
    return np.where(mask, scaled.astype(np.float64), -np.inf)


def _highest(scaled: Array, mask: Array) -> Array:
    """Of each row, (..., 1); a finite number where a row allows nothing."""
    highest = _seen(scaled, mask).max(axis=-1, keepdims=True)
    return np.where(np.isfinite(highest), highest, 0.0)


def _shared(parts: Array) -> Array:
    """Each row divided by its sum; a row of zeros stays one."""
    parts = parts.astype(np.float64)
    total = parts.sum(axis=-1, keepdims=True)
    return np.divide(parts, total, out=np.zeros_like(parts), where=total > 0)


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
