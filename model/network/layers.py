"""The two layers of the paper: encoder and decoder (section 3.1)."""

from torch import Tensor, nn

from model.network.attention import KeyValueCache, MultiHeadAttention
from model.network.config import TransformerConfig
from model.network.feed_forward import FeedForward
from model.network.residual import Residual


class EncoderLayer(nn.Module):
    """1. self-attention, 2. feed-forward. Language models are stacks of it too: only their mask is causal."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.self_attn = MultiHeadAttention(config)
        self.feed_forward = FeedForward(config)
        self.self_attn_residual, self.feed_forward_residual = Residual(config), Residual(config)

    def forward(self, x: Tensor, mask: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        x = self.self_attn_residual(x, lambda x: self.self_attn(x, x, mask, cache))
        return self.feed_forward_residual(x, self.feed_forward)


class LayerCache:
    """Keys and values of one decoder layer between steps: those of its growing target, and those of the memory."""

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
        self.cross_attn = MultiHeadAttention(config, cross=True)
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
