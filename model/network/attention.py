"""Multi-head attention (paper, section 3.2), one equation a line, a hook point on each result."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.hooks import HookPoint
from model.network.config import TransformerConfig
from model.network.masks import alibi_bias
from model.network.residual import NORM_EPS
from model.network.rotary import Rotary


class KeyValueCache:
    """Keys and values that one attention has already projected, (batch, kv_heads, key, d_k) and (..., d_v).

    A `fixed` cache (cross-attention) projects the memory once; any other grows with each new position.
    """

    def __init__(self, fixed: bool = False) -> None:
        self.fixed = fixed
        self.k: Tensor | None = None
        self.v: Tensor | None = None

    @property
    def length(self) -> int:
        """Positions whose keys and values it holds."""
        return 0 if self.k is None else self.k.shape[2]

    def update(self, attention: "MultiHeadAttention", x: Tensor) -> tuple[Tensor, Tensor]:
        """Append the keys and values of `x`, (batch, new, d_model), and return all of them."""
        if self.k is None:
            self.k, self.v = attention.keys_and_values(x)
        elif not self.fixed:
            k, v = attention.keys_and_values(x, start=self.length)
            self.k, self.v = torch.cat([self.k, k], dim=2), torch.cat([self.v, v], dim=2)
        return self.k, self.v

    def reorder(self, rows: Tensor) -> None:
        """Keep only `rows` of the batch, in that order: the surviving beams."""
        self.k, self.v = self.k[rows], self.v[rows]


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W_O, head_i = Attention(Q W_Q, K W_K, V W_V).

    Self-attention may have parts that came after the paper: fewer heads of keys and values than of queries (Ainslie et
    al. 2023), RMSNorm of queries and keys, RoPE, ALiBi. Cross-attention has none of them.
    """

    def __init__(self, config: TransformerConfig, cross: bool = False) -> None:
        super().__init__()
        self.n_heads, self.d_k, self.divisor = config.n_heads, config.d_k, config.score_divisor
        self.n_kv_heads = config.n_heads if cross else config.kv_heads
        d_model, d_k, d_v, biases = config.d_model, self.d_k, config.d_v, config.biases
        self.w_q = nn.Linear(d_model, self.n_heads * d_k, bias=biases)
        self.w_k = nn.Linear(d_model, self.n_kv_heads * d_k, bias=biases)
        self.w_v = nn.Linear(d_model, self.n_kv_heads * d_v, bias=biases)
        self.w_o = nn.Linear(self.n_heads * d_v, d_model, bias=biases)
        self.rotary = Rotary(d_k, config.max_len, config.rope_base) if config.positions == "rope" else None
        self.alibi, self.qk_norm = config.positions == "alibi", config.qk_norm
        if cross:
            self.rotary, self.alibi, self.qk_norm = None, False, False
        if self.rotary or self.qk_norm:
            self.q_pre, self.k_pre = HookPoint(), HookPoint()
        if self.qk_norm:
            self.q_norm, self.k_norm = (nn.RMSNorm(d_k, eps=NORM_EPS) for _ in range(2))
            self.q_normed, self.k_normed = HookPoint(), HookPoint()
        if self.alibi:
            self.bias = HookPoint()
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
        start = 0 if cache is None or cache.fixed else cache.length
        q = self.q(self._position(self._split_heads(self.w_q(x), self.n_heads), "q", start))
        k, v = self.keys_and_values(source) if cache is None else cache.update(self, source)
        k, v = self.k(self._share(k)), self.v(self._share(v))
        z = self._explicit(q, k, v, mask) if self._explicit_needed(q) else self._fused(q, k, v, mask)
        return self.out(self.w_o(self._join_heads(z)))

    def keys_and_values(self, source: Tensor, start: int = 0) -> tuple[Tensor, Tensor]:
        """K = source W_K + b_K and V = source W_V + b_V, split: (batch, kv_heads, key, d_k) and (..., d_v).

        The first key stands at position `start`.
        """
        k = self._position(self._split_heads(self.w_k(source), self.n_kv_heads), "k", start)
        return k, self._split_heads(self.w_v(source), self.n_kv_heads)

    def _position(self, vectors: Tensor, name: str, start: int) -> Tensor:
        """Normalise and rotate queries or keys, (batch, heads, position, d_k), where the model does that."""
        if not (self.rotary or self.qk_norm):
            return vectors
        vectors = getattr(self, f"{name}_pre")(vectors)
        if self.qk_norm:
            vectors = getattr(self, f"{name}_normed")(getattr(self, f"{name}_norm")(vectors))
        return self.rotary(vectors, start) if self.rotary else vectors

    def _share(self, vectors: Tensor) -> Tensor:
        """Give each query head its keys or values: (batch, kv_heads, key, width) -> (batch, heads, key, width)."""
        return vectors.repeat_interleave(self.n_heads // self.n_kv_heads, dim=1)

    def _explicit(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        """Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V, equation 1, step by step."""
        scores = self.scores(q @ k.transpose(-2, -1))
        mask = self.mask(mask.expand(scores.shape))
        scaled = self.scaled(scores / self.divisor)
        if self.alibi:
            bias = alibi_bias(self.n_heads, *scores.shape[-2:], scores.device)
            scaled = scaled + self.bias(bias.to(scores.dtype).expand(scores.shape))
        masked = self.masked(scaled.masked_fill(~mask, -torch.inf))
        if self.temperature.observed:
            masked = masked / self.temperature(masked.new_ones(1, self.n_heads, 1, 1))
        # A query without any visible key gets weights of 0; softmax alone would give 0/0.
        pattern = self.pattern(masked.softmax(dim=-1).masked_fill(~mask.any(dim=-1, keepdim=True), 0.0))
        return self.z(pattern @ v)

    def _fused(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        if self.alibi:
            bias = alibi_bias(self.n_heads, q.shape[-2], k.shape[-2], q.device)
            mask = bias.to(q.dtype).masked_fill(~mask, -torch.inf)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1 / self.divisor)

    def _explicit_needed(self, q: Tensor) -> bool:
        """True if a hook point is in use, or the fused kernel would be slower: on a CPU its forward and backward
        pass together take fifteen times as long at the short sentences of a training batch."""
        inner = (
            *((self.bias,) if self.alibi else ()),
            self.mask,
            self.scores,
            self.scaled,
            self.masked,
            self.temperature,
            self.pattern,
            self.z,
        )
        return (q.requires_grad and not q.is_cuda) or any(point.observed for point in inner)

    @staticmethod
    def _split_heads(x: Tensor, heads: int) -> Tensor:
        """(batch, position, heads * width) -> (batch, heads, position, width)"""
        return x.unflatten(-1, (heads, -1)).transpose(1, 2)

    @staticmethod
    def _join_heads(z: Tensor) -> Tensor:
        """Concat: (batch, heads, position, d_v) -> (batch, position, heads * d_v)"""
        return z.transpose(1, 2).flatten(-2)
