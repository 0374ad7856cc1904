"""What goes into a stack: embeddings and positional encoding (sections 3.4, 3.5)."""

import math

import torch
from torch import Tensor, nn

from model.hooks import HookPoint
from model.network.config import TransformerConfig
from model.network.dropout import Dropout
from model.network.rotary import rotation


def sinusoids(max_len: int, d_model: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i+1) = cos of the same (section 3.5).

    Returns:
        (max_len, d_model), sines in the even dimensions and cosines in the odd ones, interleaved.
    """
    cos, sin = rotation(torch.arange(max_len), d_model)
    return torch.stack([sin, cos], dim=-1).flatten(-2).to(dtype)


class InputEmbedding(nn.Module):
    """Embedding(token) sqrt(d_model) + PE(position), then dropout (sections 3.4, 3.5, 5.4).

    With RoPE, ALiBi or no positions at all, nothing is added: there is no hook point `positional`.
    """

    known = True
    """whether embedding + positions is all that the first layer reads"""

    def __init__(self, config: TransformerConfig, tokens: nn.Embedding) -> None:
        super().__init__()
        self.scale = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
        self.tokens = tokens
        if config.positions == "learned":
            self.positions = nn.Parameter(torch.empty(config.max_len, config.d_model))
        else:
            table = sinusoids(config.max_len, config.d_model) if config.positions == "sinusoidal" else None
            self.register_buffer("positions", table, persistent=False)
        self.dropout = Dropout(config.dropout)
        self.embedding, self.sum = HookPoint(), HookPoint()
        if self.positions is not None:
            self.positional = HookPoint()

    def forward(self, tokens: Tensor, start: int = 0) -> Tensor:
        """(batch, position) -> (batch, position, d_model); the first token stands at position `start`."""
        embedding = self.embedding(self.tokens(tokens) * self.scale)
        if self.positions is None:
            return self.sum(self.dropout(embedding))
        positional = self.positional(self.positions[start : start + tokens.shape[1]])
        return self.sum(self.dropout(embedding + positional))
