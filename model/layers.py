"""The blocks around attention: embeddings, positions, feed-forward, residual and norm (sections 3.1-3.5)."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.attention import KeyValueCache, MultiHeadAttention
from model.config import TransformerConfig
from model.hooks import HookPoint


class Dropout(nn.Module):
    """Dropout (section 5.4) that on a CPU decides eight elements with each 64-bit random number.

    Drawing a float per element costs a third of a training step on two cores. One byte per element
    is enough: `rate` is then rounded to a multiple of 1/256 (0.3 becomes 77/256 = 0.3008), and the
    survivors are scaled by exactly that.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.threshold = min(round(256 * rate), 255)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.rate)
        words = torch.empty(-(-x.numel() // 8), dtype=torch.int64).random_(torch.iinfo(torch.int64).min, None)
        kept = words.view(torch.uint8)[: x.numel()].view(x.shape) >= self.threshold
        return x * (kept * (256 / (256 - self.threshold)))


def sinusoids(max_len: int, d_model: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i+1) = cos of the same (section 3.5).

    Returns:
        (max_len, d_model), sines in the even dimensions and cosines in the odd ones, interleaved.
    """
    position = torch.arange(max_len, dtype=torch.float64)[:, None]
    frequency = 10_000 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    encoding = torch.stack([torch.sin(position * frequency), torch.cos(position * frequency)], dim=-1)
    return encoding.flatten(-2).to(dtype)


class InputEmbedding(nn.Module):
    """Embedding(token) sqrt(d_model) + PE(position), then dropout (sections 3.4, 3.5, 5.4)."""

    def __init__(self, config: TransformerConfig, tokens: nn.Embedding) -> None:
        super().__init__()
        self.scale = math.sqrt(config.d_model)
        self.tokens = tokens
        if config.positions == "learned":
            self.positions = nn.Parameter(torch.empty(config.max_len, config.d_model))
        else:
            self.register_buffer("positions", sinusoids(config.max_len, config.d_model), persistent=False)
        self.dropout = Dropout(config.dropout)
        self.embedding, self.positional, self.sum = HookPoint(), HookPoint(), HookPoint()

    def forward(self, tokens: Tensor, start: int = 0) -> Tensor:
        """(batch, position) -> (batch, position, d_model); the first token stands at position `start`."""
        embedding = self.embedding(self.tokens(tokens) * self.scale)
        positional = self.positional(self.positions[start : start + tokens.shape[1]])
        return self.sum(self.dropout(embedding + positional))


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, equation 2 (or GELU for max)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.w_1 = nn.Linear(config.d_model, config.d_ff)
        self.w_2 = nn.Linear(config.d_ff, config.d_model)
        self.activation = {"relu": F.relu, "gelu": F.gelu}[config.activation]
        self.hidden, self.out = HookPoint(), HookPoint()

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.hidden(self.activation(self.w_1(x)))
        return self.out(self.w_2(hidden))


class Residual(nn.Module):
    """Around each sub-layer: LayerNorm(x + Sublayer(x)) (section 3.1), or x + Sublayer(LayerNorm(x)) if pre-norm."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.pre_norm = config.norm == "pre"
        self.norm = nn.LayerNorm(config.d_model)
        self.dropout = Dropout(config.dropout)
        self.before, self.added, self.normed = HookPoint(), HookPoint(), HookPoint()

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        x = self.before(x)
        if self.pre_norm:
            return self.added(x + self.dropout(sublayer(self.normed(self.norm(x)))))
        return self.normed(self.norm(self.added(x + self.dropout(sublayer(x)))))


class EncoderLayer(nn.Module):
    """1. self-attention, 2. feed-forward."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.self_attn = MultiHeadAttention(config)
        self.feed_forward = FeedForward(config)
        self.self_attn_residual, self.feed_forward_residual = Residual(config), Residual(config)

    def forward(self, x: Tensor, src_mask: Tensor) -> Tensor:
        x = self.self_attn_residual(x, lambda x: self.self_attn(x, x, src_mask))
        return self.feed_forward_residual(x, self.feed_forward)


class LayerCache:
    """What one decoder layer keeps between steps: its own growing keys and values, the memory's once."""

    def __init__(self) -> None:
        self.self_attn = KeyValueCache()
        self.cross_attn = KeyValueCache(fixed=True)

    def reorder(self, rows: Tensor) -> None:
        self.self_attn.reorder(rows)
        self.cross_attn.reorder(rows)


class DecoderLayer(nn.Module):
    """1. masked self-attention, 2. cross-attention over the encoder's memory, 3. feed-forward."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.self_attn = MultiHeadAttention(config)
        self.cross_attn = MultiHeadAttention(config)
        self.feed_forward = FeedForward(config)
        self.self_attn_residual, self.cross_attn_residual = Residual(config), Residual(config)
        self.feed_forward_residual = Residual(config)

    def forward(
        self, x: Tensor, memory: Tensor, tgt_mask: Tensor, src_mask: Tensor, cache: LayerCache | None = None
    ) -> Tensor:
        own, cross = (cache.self_attn, cache.cross_attn) if cache else (None, None)
        x = self.self_attn_residual(x, lambda x: self.self_attn(x, x, tgt_mask, own))
        x = self.cross_attn_residual(x, lambda x: self.cross_attn(x, memory, src_mask, cross))
        return self.feed_forward_residual(x, self.feed_forward)
