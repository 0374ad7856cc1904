"""Masks: which keys a query may attend to (paper, section 3.2.3), and ALiBi's bias. True = may attend."""

from collections.abc import Sequence

import torch
from torch import Tensor

from model.network.config import PAD


def padding_mask(tokens: Tensor) -> Tensor:
    """Keys that are not padding: (batch, position) -> (batch, 1, 1, position)."""
    return (tokens != PAD)[:, None, None, :]


def causal_mask(size: int, device: torch.device | str | None = None) -> Tensor:
    """Keys at or before the query: (1, 1, size, size), lower triangle True."""
    return torch.ones(1, 1, size, size, dtype=torch.bool, device=device).tril()


def window_mask(n_queries: int, n_keys: int, window: int, device: torch.device | str | None = None) -> Tensor:
    """Keys less than `window` positions away: (1, 1, query, key).

    The queries are the last of the positions. A window of 0 has no limit. In Longformer (Beltagy et al. 2020, section
    3.1) w is the whole window, half of it on either side; here it is one side, the position itself included.
    """
    near = _distances(n_queries, n_keys, device).abs() < (window or n_keys)
    return near[None, None]


def pattern_mask(
    n_queries: int,
    n_keys: int,
    window: int | None = None,
    stride: int | None = None,
    global_tokens: Sequence[int] = (),
    block: int | None = None,
    device: torch.device | str | None = None,
) -> Tensor:
    """The cells of a sparse attention, one line a pattern; a cell in any of them is kept: (1, 1, query, key).

    The queries are the last of the positions. Each position keeps itself.

    Args:
        n_queries: new positions.
        n_keys: all positions.
        window: keys less than this many positions away, as in `window_mask`.
        stride: every key whose distance is a multiple of it (Child et al. 2019, section 4.3).
        global_tokens: positions that attend to all and that all attend to (Beltagy et al. 2020, section 3.1).
        block: keys in the query's own block of this many positions (Qiu et al. 2020).
        device: of the mask.
    """
    distances, keys = _distances(n_queries, n_keys, device), torch.arange(n_keys, device=device)
    queries = keys[n_keys - n_queries :, None]
    kept = distances == 0
    if window:
        kept |= distances.abs() < min(window, n_keys)
    if stride:
        kept |= distances % min(stride, n_keys) == 0
    if block:
        kept |= queries // min(block, n_keys) == keys // min(block, n_keys)
    for position in global_tokens:
        if position < n_keys:
            kept |= (queries == position) | (keys == position)
    return kept[None, None]


def alibi_bias(n_heads: int, n_queries: int, n_keys: int, device: torch.device | str | None = None) -> Tensor:
    """-slope * |query - key|, added to the scaled scores: (1, heads, query, key), in double precision.

    The paper defines it for causal attention, where no key is after its query; the symmetric form is the extension to
    an encoder.
    """
    return -(alibi_slopes(n_heads, device)[:, None, None] * _distances(n_queries, n_keys, device).abs())[None]


def alibi_slopes(n_heads: int, device: torch.device | str | None = None) -> Tensor:
    """(head,): 2^(-8 h / heads) for h = 1 to heads, head 0 the steepest (Press et al. 2022, section 3).

    For a number of heads that is no power of two the paper mixes two such series, which we do not.
    """
    return 2.0 ** (-8 * torch.arange(1, n_heads + 1, dtype=torch.float64, device=device) / n_heads)


def _distances(n_queries: int, n_keys: int, device: torch.device | str | None = None) -> Tensor:
    """Query position - key position: (query, key); the queries are the last of the positions."""
    positions = torch.arange(n_keys, device=device)
    return positions[n_keys - n_queries :, None] - positions
