"""What passes through attention, beside the weights alone: weights times what they weigh, and weights over layers."""

from collections.abc import Sequence

import numpy as np

from model.trace import Array, Attention


def norm_weighted(attention: Attention) -> Array:
    """The length of what each key adds to each query's output, per head (Kobayashi et al. 2020).

    A weight can be large on a key whose value is small; this is the length of the product of the two.
    b_O, which no key adds, is left out.

    Returns:
        (heads, query, key), in double precision: ||alpha_ij v_j W_O||.
    """
    v, w_o = attention.v.astype(np.float64), attention.projections.w_o.astype(np.float64)
    values = v @ w_o  # (heads, key, d_model): f(x_j) = v_j W_O
    lengths = np.linalg.norm(values, axis=-1)  # (heads, key): ||f(x_j)||
    return attention.pattern * lengths[:, None, :]  # ||alpha_ij f(x_j)||, as alpha_ij >= 0


def rollout(patterns: Sequence[Array]) -> Array:
    """How much of each input token reaches each position after each layer (Abnar & Zuidema 2020).

    Args:
        patterns: the self-attention weights of each layer, lowest first, (heads, position, position) each.

    Returns:
        (layers, position, position), in double precision: entry l is the product of layers l to 0; rows sum to 1.
    """
    found: list[Array] = []
    for pattern in patterns:
        a = pattern.astype(np.float64).mean(axis=0)  # over the heads
        a_bar = 0.5 * a + 0.5 * np.eye(len(a))  # the residual connection carries the other half
        found.append(a_bar @ found[-1] if found else a_bar)
    return np.stack(found)
