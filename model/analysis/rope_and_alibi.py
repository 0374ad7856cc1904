"""Two later position schemes, RoPE and ALiBi, applied to the queries, keys and scores of a run.

Neither adds anything to the embeddings; both act inside self-attention. The model was not trained with them, so the
results show the mechanism, not what such a model would have learned. Double precision throughout.
"""

import math

import numpy as np

from model.analysis.position_table import wavelengths
from model.trace import Array


def rope(x: Array, positions: Array) -> Array:
    """Rotate each pair of dimensions (2i, 2i+1) by position * 10000^(-2i / d_k) (Su et al. 2021, equation 34).

    Args:
        x: (..., position, d_k), queries or keys.
        positions: (position,), the position of each.

    Returns:
        (..., position, d_k)

    Raises:
        ValueError: d_k is odd.
    """
    d_k = x.shape[-1]
    if d_k % 2:
        raise ValueError(f"RoPE rotates pairs of dimensions, and d_k = {d_k} is odd.")
    angles = np.asarray(positions, np.float64)[:, None] * (2 * math.pi / wavelengths(d_k))
    even, odd = x[..., 0::2].astype(np.float64), x[..., 1::2].astype(np.float64)
    rotated = (even * np.cos(angles) - odd * np.sin(angles), even * np.sin(angles) + odd * np.cos(angles))
    return np.stack(rotated, axis=-1).reshape(x.shape)


def rope_scores(q: Array, k: Array, shift: int = 0) -> Array:
    """(..., query, key): q_m . k_n after rotating both by their positions, which start at `shift`."""
    queries, keys = (shift + np.arange(x.shape[-2]) for x in (q, k))
    return rope(q, queries) @ np.swapaxes(rope(k, keys), -2, -1)


def rope_by_offset(query: Array, key: Array, offsets: Array) -> Array:
    """(offset,): the score of a query (d_k,) and a key (d_k,) that is `offset` positions after it."""
    rotated = rope(np.broadcast_to(key, (len(offsets), len(key))), offsets)
    return rotated @ query.astype(np.float64)


def alibi_slopes(n_heads: int) -> Array:
    """(head,): 2^(-8 h / n) for h = 1 to n, head 0 the steepest (Press et al. 2022, section 3)."""
    return 2.0 ** (-8 * np.arange(1, n_heads + 1) / n_heads)


def alibi_bias(queries: int, keys: int, slope: float) -> Array:
    """(query, key): -slope |i - j|, which is added to the scaled scores before the softmax.

    The paper defines it for causal attention, where j <= i; the symmetric form is the extension to an encoder.
    """
    return -slope * np.abs(np.arange(queries)[:, None] - np.arange(keys)).astype(np.float64)
