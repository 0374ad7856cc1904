"""Entropy of a probability distribution, and distances between two; shares. The last axis holds the outcomes."""

import numpy as np

from model.trace import Array


def entropy(p: Array) -> Array:
    """(..., outcome) -> (...): -sum p log2 p in bits, with 0 log 0 = 0."""
    p = p.astype(np.float64)
    logs = np.log2(p, out=np.zeros_like(p), where=p > 0)
    # No -0, and nothing below 0 from rounding.
    return np.maximum(-(p * logs).sum(axis=-1), 0.0)


def total_variation(p: Array, q: Array) -> Array:
    """(..., outcome) each -> (...): sum |p - q| / 2, 0 to 1 (Jain and Wallace 2019, section 3)."""
    return np.abs(q - p).sum(axis=-1, dtype=np.float64) / 2


def jensen_shannon(p: Array, q: Array) -> Array:
    """(..., outcome) each -> (...): KL(p || m) / 2 + KL(q || m) / 2 with m = (p + q) / 2, 0 to ln 2 nats.

    Jain and Wallace (2019), section 3.
    """
    p, q = p.astype(np.float64), q.astype(np.float64)
    middle = (p + q) / 2
    return np.maximum(0.0, (_kl_divergence(p, middle) + _kl_divergence(q, middle)) / 2)


def ratio(upper: Array, lower: Array, otherwise: float = 0.0) -> Array:
    """upper / lower, in their own precision; `otherwise` where `lower` is not above 0."""
    shape = np.broadcast_shapes(np.shape(upper), lower.shape)
    out = np.full(shape, otherwise, np.result_type(upper, lower))
    return np.divide(upper, lower, out=out, where=lower > 0)


def _kl_divergence(p: Array, q: Array) -> Array:
    """KL(p || q) = sum p ln(p / q) in nats, with 0 ln 0 = 0."""
    quotients = np.divide(p, q, out=np.ones_like(p), where=p > 0)
    return (p * np.log(quotients)).sum(axis=-1)
