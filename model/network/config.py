"""The configuration of a Transformer, and presets, the paper's own among them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

SPECIAL_TOKENS = ("<pad>", "<unk>", "<s>", "</s>")
PAD, UNK, BOS, EOS = range(len(SPECIAL_TOKENS))


@dataclass(frozen=True)
class TransformerConfig:
    """Every choice that determines a Transformer's weights; the defaults are the paper's base model.

    Raises:
        ValueError: a field is out of its range; the sentence names the field and what it may be.
    """

    vocab_size: int = 37_000
    d_model: int = 512
    n_heads: int = 8
    d_ff: int = 2048
    n_encoder_layers: int = 6
    n_decoder_layers: int = 6
    dropout: float = 0.1
    max_len: int = 512
    norm: Literal["post", "pre"] = "post"
    positions: Literal["sinusoidal", "learned"] = "sinusoidal"
    activation: Literal["relu", "gelu"] = "relu"
    tie_embeddings: bool = True
    scale_scores: bool = True
    """False leaves out the division by sqrt(d_k) of equation 1"""

    def __post_init__(self) -> None:
        sizes = ("vocab_size", "d_model", "n_heads", "d_ff", "max_len", "n_encoder_layers", "n_decoder_layers")
        for name in sizes:
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ValueError(f"{name} must be a positive whole number, got {value!r}")
        choices = {"norm": ("post", "pre"), "positions": ("sinusoidal", "learned"), "activation": ("relu", "gelu")}
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}")
        for name in ("tie_embeddings", "scale_scores"):
            if type(getattr(self, name)) is not bool:
                raise ValueError(f"{name} must be true or false, got {getattr(self, name)!r}")
        if self.d_model % self.n_heads:
            raise ValueError(f"d_model ({self.d_model}) must be a multiple of n_heads ({self.n_heads})")
        if self.d_model % 2:
            raise ValueError(f"d_model ({self.d_model}) must be even: sines and cosines come in pairs")
        if type(self.dropout) not in (int, float) or not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must lie in [0, 1), got {self.dropout!r}")

    @property
    def d_k(self) -> int:
        """Width of one head's queries, keys and values (paper, section 3.2.2): d_model / n_heads."""
        return self.d_model // self.n_heads

    @property
    def score_divisor(self) -> float:
        """What the scores q k^T are divided by before the softmax: sqrt(d_k) (equation 1), or 1."""
        return math.sqrt(self.d_k) if self.scale_scores else 1.0


PRESETS: Mapping[str, TransformerConfig] = MappingProxyType(
    {
        "base": TransformerConfig(),
        "big": TransformerConfig(d_model=1024, n_heads=16, d_ff=4096, dropout=0.3),
        "small": TransformerConfig(
            vocab_size=8000, d_model=256, n_heads=8, d_ff=1024, n_encoder_layers=4, n_decoder_layers=4, dropout=0.2
        ),
        "tiny": TransformerConfig(
            vocab_size=8000, d_model=128, n_heads=4, d_ff=256, n_encoder_layers=4, n_decoder_layers=4, dropout=0.3
        ),
        "toy": TransformerConfig(
            vocab_size=300,
            d_model=64,
            n_heads=4,
            d_ff=128,
            n_encoder_layers=2,
            n_decoder_layers=2,
            max_len=64,
            dropout=0.0,
        ),
    }
)
