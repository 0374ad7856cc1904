"""Masks: which keys a query may attend to (paper, section 3.2.3). True = may attend."""

import torch
from torch import Tensor

from model.network.config import PAD


def padding_mask(tokens: Tensor) -> Tensor:
    """Keys that are not padding: (batch, position) -> (batch, 1, 1, position)."""
    return (tokens != PAD)[:, None, None, :]


def causal_mask(size: int, device: torch.device | str | None = None) -> Tensor:
    """Keys at or before the query: (1, 1, size, size), lower triangle True."""
    return torch.ones(1, 1, size, size, dtype=torch.bool, device=device).tril()
