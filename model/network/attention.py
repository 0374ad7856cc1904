"""Multi-head attention (paper, section 3.2), one equation a line, a hook point on each result."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.hooks import HookPoint
from model.network.config import TransformerConfig


class KeyValueCache:
    """Keys and values that one attention has already projected, (batch, heads, key, d_k) each.

    A `fixed` cache (cross-attention) projects the memory once; any other grows with each new position.
    """

    def __init__(self, fixed: bool = False) -> None:
        self.fixed = fixed
        self.k: Tensor | None = None
        self.v: Tensor | None = None

    def update(self, attention: "MultiHeadAttention", x: Tensor) -> tuple[Tensor, Tensor]:
        """Append the keys and values of `x`, (batch, new, d_model), and return all of them."""
        if self.k is None:
            self.k, self.v = attention.keys_and_values(x)
        elif not self.fixed:
            k, v = attention.keys_and_values(x)
            self.k, self.v = torch.cat([self.k, k], dim=2), torch.cat([self.v, v], dim=2)
        return self.k, self.v

    def reorder(self, rows: Tensor) -> None:
        """Keep only `rows` of the batch, in that order: the surviving beams."""
        self.k, self.v = self.k[rows], self.v[rows]


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W_O, head_i = Attention(Q W_Q, K W_K, V W_V)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.n_heads, self.d_k, self.divisor = config.n_heads, config.d_k, config.score_divisor
        self.w_q = nn.Linear(config.d_model, config.d_model)
        self.w_k = nn.Linear(config.d_model, config.d_model)
        self.w_v = nn.Linear(config.d_model, config.d_model)
        self.w_o = nn.Linear(config.d_model, config.d_model)
        self.q, self.k, self.v = HookPoint(), HookPoint(), HookPoint()
        self.mask, self.scores, self.scaled, self.masked = HookPoint(), HookPoint(), HookPoint(), HookPoint()
        self.temperature, self.pattern, self.z, self.out = HookPoint(), HookPoint(), HookPoint(), HookPoint()

    def forward(self, x: Tensor, source: Tensor, mask: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        """Attend from each position of `x` to the positions of `source` that `mask` allows.

        Args:
            x: (batch, query, d_model), where the queries come from.
            source: (batch, key, d_model), where keys and values come from; `x` itself in self-attention.
            mask: bool, broadcastable to (batch, heads, query, key); True = may attend.
            cache: earlier keys and values of this attention; `source` then holds the new positions.

        Returns:
            (batch, query, d_model)
        """
        q = self.q(self._split_heads(self.w_q(x)))
        k, v = self.keys_and_values(source) if cache is None else cache.update(self, source)
        z = self._explicit(q, k, v, mask) if self._explicit_needed(q) else self._fused(q, k, v, mask)
        return self.out(self.w_o(self._join_heads(z)))

    def keys_and_values(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """K = source W_K + b_K and V = source W_V + b_V, split: (batch, heads, key, d_k) each."""
        k = self.k(self._split_heads(self.w_k(source)))
        v = self.v(self._split_heads(self.w_v(source)))
        return k, v

    def _explicit(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        """Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V, equation 1, step by step."""
        scores = self.scores(q @ k.transpose(-2, -1))
        mask = self.mask(mask.expand(scores.shape))
        scaled = self.scaled(scores / self.divisor)
        masked = self.masked(scaled.masked_fill(~mask, -torch.inf))
        if self.temperature.observed:
            masked = masked / self.temperature(masked.new_ones(1, self.n_heads, 1, 1))
        # A query without any visible key gets weights of 0; softmax alone would give 0/0.
        pattern = self.pattern(masked.softmax(dim=-1).masked_fill(~mask.any(dim=-1, keepdim=True), 0.0))
        return self.z(pattern @ v)

    def _fused(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1 / self.divisor)

    def _explicit_needed(self, q: Tensor) -> bool:
        """Whether a hook point is in use, or the fused kernel would be slower: on a CPU its forward and backward
        pass together take fifteen times as long at the short sentences of a training batch."""
        inner = (self.mask, self.scores, self.scaled, self.masked, self.temperature, self.pattern, self.z)
        return (q.requires_grad and not q.is_cuda) or any(point.observed for point in inner)

    def _split_heads(self, x: Tensor) -> Tensor:
        """(batch, position, d_model) -> (batch, heads, position, d_k)"""
        return x.unflatten(-1, (self.n_heads, self.d_k)).transpose(1, 2)

    @staticmethod
    def _join_heads(z: Tensor) -> Tensor:
        """Concat: (batch, heads, position, d_k) -> (batch, position, d_model)"""
        return z.transpose(1, 2).flatten(-2)
