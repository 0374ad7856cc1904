"""The configuration of a Transformer, and presets, the paper's own among them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args, get_type_hints

from model.beside import read_beside
from model.language import Refusal

Family = Literal["encoder_decoder", "decoder", "encoder"]
"""which stacks a model has"""

SPECIAL_TOKENS = ("<pad>", "<unk>", "<s>", "</s>")
PAD, UNK, BOS, EOS = range(len(SPECIAL_TOKENS))


@dataclass(frozen=True)
class TransformerConfig:
    """Every choice that determines a Transformer's weights; the defaults are the paper's base model.

    The numbers of layers give the family: with both an encoder and a decoder the model of the paper, without an encoder
    a language model (decoder-only), without a decoder a masked language model (encoder-only).

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
    positions: Literal["sinusoidal", "learned", "rope", "alibi", "none"] = "sinusoidal"
    activation: Literal["relu", "gelu", "swiglu", "geglu"] = "relu"
    tie_embeddings: bool = True
    scale_scores: bool = True
    """False leaves out the division by sqrt(d_k) of equation 1"""
    norm_function: Literal["layer_norm", "rms_norm", "batch_norm", "none"] = "layer_norm"
    n_kv_heads: int = 0
    """heads of keys and values in self-attention, each shared by n_heads / n_kv_heads query heads; 0: n_heads"""
    biases: bool = True
    """False leaves out the biases of all projections, feed-forward networks and norms"""
    qk_norm: bool = False
    """RMSNorm of each query and key, before any rotation"""
    window: int = 0
    """self-attention sees keys less than this many positions away; 0: all"""
    rope_base: int = 10_000
    """longest wavelength of RoPE's angles, in units of 2 pi positions"""
    scale_embeddings: bool = True
    """multiply embeddings by sqrt(d_model) (section 3.4)"""
    d_key: int = 0
    """width d_k of one head's queries and keys; 0: d_model / n_heads, as that of its values"""
    residual: bool = True
    """False leaves out the residual connection around each sub-layer"""

    def __post_init__(self) -> None:
        at_least = dict.fromkeys(("vocab_size", "d_model", "n_heads", "d_ff", "max_len", "rope_base"), 1)
        at_least |= dict.fromkeys(("n_encoder_layers", "n_decoder_layers", "n_kv_heads", "window", "d_key"), 0)
        for name, least in at_least.items():
            value = getattr(self, name)
            if type(value) is not int or value < least:
                facts = {"name": name, "value": value}
                if least:
                    raise Refusal("{name} must be a positive whole number, got {value!r}", **facts)
                raise Refusal("{name} must be a whole number from 0 on, got {value!r}", **facts)
        self._check_choices()
        if not self.n_encoder_layers + self.n_decoder_layers:
            raise Refusal("n_encoder_layers and n_decoder_layers must not both be 0: the model needs a layer")
        self._check_widths()
        if type(self.dropout) not in (int, float) or not 0 <= self.dropout < 1:
            raise Refusal("dropout must lie in [0, 1), got {value!r}", value=self.dropout)

    def _check_choices(self) -> None:
        for name, kind in get_type_hints(type(self)).items():
            value, choices = getattr(self, name), get_args(kind)
            if choices and value not in choices:
                names = ", ".join(choices)
                raise Refusal("{name} must be one of {names}, got {value!r}", name=name, names=names, value=value)
            if kind is bool and type(value) is not bool:
                raise Refusal("{name} must be true or false, got {value!r}", name=name, value=value)

    def _check_widths(self) -> None:
        sizes = {"d_model": self.d_model, "n_heads": self.n_heads, "n_kv_heads": self.kv_heads}
        for whole, part in (("d_model", "n_heads"), ("n_heads", "n_kv_heads")):
            size, divisor = sizes[whole], sizes[part]
            if size % divisor:
                raise Refusal(
                    "{whole} ({size}) must be a multiple of {part} ({divisor})",
                    whole=whole,
                    size=size,
                    part=part,
                    divisor=divisor,
                )
        if self.d_model % 2:
            raise Refusal("d_model ({size}) must be even: sines and cosines come in pairs", size=self.d_model)
        if self.positions == "rope" and self.d_k % 2:
            raise Refusal(
                "the width of a head's queries ({size}) must be even: RoPE rotates pairs of dimensions", size=self.d_k
            )

    @property
    def family(self) -> Family:
        """Which stacks the model has."""
        if self.n_encoder_layers and self.n_decoder_layers:
            return "encoder_decoder"
        return "decoder" if self.n_decoder_layers else "encoder"

    @property
    def d_k(self) -> int:
        """Width of one head's queries and keys (paper, section 3.2.2)."""
        return self.d_key or self.d_v

    @property
    def d_v(self) -> int:
        """Width of one head's values: d_model / n_heads."""
        return self.d_model // self.n_heads

    @property
    def kv_heads(self) -> int:
        """Heads of keys and values in self-attention."""
        return self.n_kv_heads or self.n_heads

    @property
    def gated(self) -> bool:
        """True if the feed-forward networks multiply two projections (Shazeer 2020)."""
        return self.activation in ("swiglu", "geglu")

    @property
    def score_divisor(self) -> float:
        """What the scores q k^T are divided by before the softmax: sqrt(d_k) (equation 1), or 1."""
        return math.sqrt(self.d_k) if self.scale_scores else 1.0

    @property
    def classic(self) -> bool:
        """True if the layers have only parts that the paper has, pre-norm and GELU aside."""
        return (
            self.norm_function == "layer_norm"
            and self.positions in ("sinusoidal", "learned")
            and self.kv_heads == self.n_heads
            and self.d_k == self.d_v
            and self.biases
            and self.residual
            and not (self.gated or self.qk_norm or self.window)
        )


PRESETS: Mapping[str, TransformerConfig] = {
    name: TransformerConfig(**changes) for name, changes in read_beside(__file__).items()
}
