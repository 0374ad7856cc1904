"""Masks: which keys a query may attend to (paper, section 3.2.3), and ALiBi's bias. True = may attend."""

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
    """Keys less than `window` positions away (Beltagy et al. 2020, section 3.1): (1, 1, query, key).

    The queries are the last of the positions. A window of 0 has no limit.
    """
    near = _distances(n_queries, n_keys, device).abs() < (window or n_keys)
    return near[None, None]


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
