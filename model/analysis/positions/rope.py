"""RoPE on the queries and keys of a run whose model was not trained with it, in double precision.

The results show the mechanism, not what a model trained with it would have learned.
"""

import numpy as np
import torch

from model.network.rotary import rotate, rotation
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
    halves = torch.tensor(x, dtype=torch.float64).unflatten(-1, (-1, 2)).mT.flatten(-2)
    rotated = rotate(halves, *rotation(torch.tensor(positions), d_k))
    return rotated.unflatten(-1, (2, -1)).mT.flatten(-2).numpy()


def rope_scores(q: Array, k: Array, shift: int = 0) -> Array:
    """(..., query, key): q_m . k_n after rotating both by their positions, which start at `shift`."""
    queries, keys = (shift + np.arange(x.shape[-2]) for x in (q, k))
    return rope(q, queries) @ np.swapaxes(rope(k, keys), -2, -1)


def rope_by_offset(query: Array, key: Array, offsets: Array) -> Array:
    """(offset,): the score of a query (d_k,) and a key (d_k,) that is `offset` positions after it."""
    rotated = rope(np.broadcast_to(key, (len(offsets), len(key))), offsets)
    return rotated @ query.astype(np.float64)
