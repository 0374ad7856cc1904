"""The softmax of one attention: its temperature, its mask, and why the paper divides by sqrt(d_k).

softmax(x / tau) as in Hinton, Vinyals, Dean (2015), section 2. Plain numpy on the numbers of a run.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from model.analysis.distributions import entropy, ratio
from model.trace import Array, Attention, Trace


def softmax(logits: Array) -> Array:
    """Softmax over the last axis, in the precision of `logits`; a row of -inf becomes zeros, as in the model."""
    return _normalise(np.exp(logits - _highest(logits)))


def softmax_at(scaled: Array, mask: Array, tau: float) -> Array:
    """softmax(scaled / tau) over the keys that the mask allows, in double precision; 0 on masked keys.

    Args:
        scaled: (..., key), scores / sqrt(d_k).
        mask: bool (..., key), True = allowed; a row that allows nothing gives zeros.
        tau: temperature, above 0.

    Raises:
        ValueError: tau is not a number above 0.
    """
    if not tau > 0:
        raise ValueError(
            f"tau must be a number above 0, got {tau!r}; for the limits use one_hot_weights, uniform_weights"
        )
    logits = _mask_scores(scaled, mask)
    # The highest score becomes 0 before the division, so a small tau can overflow to -inf only, never to inf.
    with np.errstate(over="ignore"):
        return softmax((logits - _highest(logits)) / tau)


def softmax_peaks(scores: Array, mask: Array) -> Array:
    """(query,): the largest weight of each row's softmax over the keys that `mask` allows; 0 if it allows none."""
    return softmax_at(scores, mask, 1.0).max(axis=-1)


def one_hot_weights(scaled: Array, mask: Array) -> Array:
    """The limit tau -> 0: weight 1 on the highest allowed score; equal highest scores share it."""
    logits = _mask_scores(scaled, mask)
    return _normalise(((logits == _highest(logits)) & mask).astype(np.float64))


def uniform_weights(mask: Array) -> Array:
    """The limit tau -> infinity: the same weight on every allowed key."""
    return _normalise(mask.astype(np.float64))


def entropy_by_temperature(scaled: Array, mask: Array, taus: Sequence[float]) -> Array:
    """(tau, ...): the entropy of every row at each temperature, in bits; arguments as in `softmax_at`."""
    return np.stack([entropy(softmax_at(scaled, mask, tau)) for tau in taus])


def mean_entropy(trace: Trace) -> float:
    """Mean entropy of the rows of all attention weights of a run, in bits; each row counts once."""
    rows = [entropy(attention.pattern).ravel() for attention in trace.attentions.values()]
    return float(np.concatenate(rows).mean())


@dataclass(frozen=True)
class SoftmaxJacobian:
    """How a row's weights p respond to what the softmax reads, x / tau: dp_i / d(x_j / tau) = p_i (delta_ij - p_j)."""

    matrix: Array
    """(key, key): diag(p) - p p^T, symmetric, rows sum to 0"""
    largest: Array
    """(tau,): the largest eigenvalue over temperature, at most 1/2"""
    frobenius: Array
    """(tau,): the Frobenius norm over temperature"""


def softmax_jacobian(attention: Attention, head: int, row: int, tau: float, taus: Sequence[float]) -> SoftmaxJacobian:
    """The Jacobian of one row's softmax at the temperature `tau`, and its size at each of `taus`.

    tau = 1 is the model as trained; masked keys have zeros.
    """
    x, mask = attention.pre_softmax[head, row], attention.mask[head, row]
    p = np.stack([softmax_at(x, mask, t) for t in (tau, *taus)])
    matrices = p[:, :, None] * np.eye(len(x)) - p[:, :, None] * p[:, None, :]
    largest = np.maximum(np.linalg.eigvalsh(matrices[1:]).max(axis=-1), 0.0)
    return SoftmaxJacobian(matrices[0], largest, np.linalg.norm(matrices[1:], axis=(-2, -1)))


@dataclass(frozen=True)
class ProductStatistics:
    """Mean and variance of one head's q and k, and of the products q k (paper, section 3.2.1, footnote 4)."""

    q_mean: float
    """over all components of all queries"""
    q_variance: float
    k_mean: float
    k_variance: float
    """over all components of all keys"""
    if_independent: float
    """the variance of q k if all components were independent, with these means and variances"""
    variance: float
    """of the products q k in the cells that the mask allows"""
    scaled_variance: float
    """of the same products divided by sqrt(d_k), whether the model divides them or not: `variance` / d_k"""


def product_statistics(attention: Attention, head: int) -> ProductStatistics:
    """Measured on the run's q, k and scores, in double precision."""
    q, k = (side[head].astype(np.float64) for side in (attention.q, attention.k))
    q_mean, k_mean, q_variance, k_variance = q.mean(), k.mean(), q.var(), k.var()
    of_one_component = q_variance * k_variance + q_variance * k_mean**2 + k_variance * q_mean**2
    allowed = attention.mask[head]
    variance, independent = attention.scores[head][allowed].astype(np.float64).var(), attention.d_k * of_one_component
    statistics = (q_mean, q_variance, k_mean, k_variance, independent, variance, variance / attention.d_k)
    return ProductStatistics(*map(float, statistics))


@dataclass(frozen=True)
class MaskOrders:
    """The weights of the same scores with the mask in three places, (..., key) each."""

    before: Array
    """masked scores are -inf in the softmax, as in the paper"""
    after: Array
    """softmax of all scores, then masked weights set to 0"""
    renormalised: Array
    """`after` divided by its sum; 0 where every weight of `after` underflowed"""


def mask_orders(scaled: Array, mask: Array, tau: float = 1.0) -> MaskOrders:
    """Mask before the softmax, after it, and after it with the rows renormalised, in the precision of `scaled`;
    arguments as of `softmax_at`."""
    logits = scaled / scaled.dtype.type(tau)
    after = np.where(mask, softmax(logits), 0).astype(scaled.dtype)
    return MaskOrders(softmax(np.where(mask, logits, -np.inf)), after, _normalise(after))


def future_mass(pattern: Array) -> Array:
    """(..., query, key) -> (..., query): the weight that each query puts on keys after its own position."""
    return np.triu(pattern, 1).sum(axis=-1)


def _mask_scores(scaled: Array, mask: Array) -> Array:
    return np.where(mask, scaled.astype(np.float64), -np.inf)


def _highest(logits: Array) -> Array:
    """(..., 1): the maximum of each row; finite where a row holds nothing but -inf."""
    return logits.max(axis=-1, keepdims=True, initial=np.finfo(logits.dtype).min)


def _normalise(weights: Array) -> Array:
    """Each row divided by its sum; a row of zeros stays one."""
    return ratio(weights, weights.sum(axis=-1, keepdims=True))
