"""Two later ways to say where a word stands, on the queries, keys and scores of a run: RoPE and ALiBi.

Neither adds anything to the embeddings; both act inside self-attention. The models here were not trained with
them: what they make of a run's numbers shows the mechanism, not what such a model would have learned.
Double precision throughout.
"""

import math

import numpy as np

from model.analysis.position_table import wavelengths
from model.trace import Array


def rope(x: Array, positions: Array) -> Array:
    """Turn each pair of dimensions (2i, 2i+1) by position * 10000^(-2i / d_k) (Su et al. 2021, equation 34).

    Args:
        x: (..., position, d_k), queries or keys of one head or more.
        positions: (position,), where each of them stands.

    Returns:
        (..., position, d_k)

    Raises:
        ValueError: d_k is odd.
    """
    d_k = x.shape[-1]
    if d_k % 2:
        raise ValueError(f"RoPE turns dimensions in pairs, and d_k = {d_k} is odd.")
    angles = np.asarray(positions, np.float64)[:, None] * (2 * math.pi / wavelengths(d_k))
    even, odd = x[..., 0::2].astype(np.float64), x[..., 1::2].astype(np.float64)
    turned = (even * np.cos(angles) - odd * np.sin(angles), even * np.sin(angles) + odd * np.cos(angles))
    return np.stack(turned, axis=-1).reshape(x.shape)


def rope_scores(q: Array, k: Array, shift: int = 0) -> Array:
    """(..., query, key): q_m . k_n after each was turned by its own position, the first of them at `shift`."""
    queries, keys = (shift + np.arange(x.shape[-2]) for x in (q, k))
    return rope(q, queries) @ np.swapaxes(rope(k, keys), -2, -1)


def rope_by_offset(query: Array, key: Array, offsets: Array) -> Array:
    """(offset,): the score of one query (d_k,) and one key (d_k,) where the key stands n - m positions further on."""
    turned = rope(np.broadcast_to(key, (len(offsets), len(key))), offsets)
    return turned @ query.astype(np.float64)


def alibi_slopes(n_heads: int) -> Array:
    """(head,): 2^(-8 h / n) for h = 1 to n, head 0 the steepest (Press et al. 2022, section 3)."""
    return 2.0 ** (-8 * np.arange(1, n_heads + 1) / n_heads)


def alibi_bias(queries: int, keys: int, slope: float) -> Array:
    """(query, key): -slope |i - j|, which is added to the scaled scores before the softmax.

    The paper defines it for causal attention, where j <= i; on both sides alike is the plain extension to an encoder.
    """
    return -slope * np.abs(np.arange(queries)[:, None] - np.arange(keys)).astype(np.float64)
