"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017) in one file, to be read beside the paper.

    python transformer.py FOLDER "A dog runs through the snow."

FOLDER has a checkpoint of this project: an encoder-decoder translates the text, a decoder continues it, an encoder
fills each <mask>. Needs PyTorch, safetensors and SentencePiece. The app runs `network/`, whose equations are these,
with a hook point on each result; the logits of both are the same, bit for bit.
"""

import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from sentencepiece import SentencePieceProcessor
from torch import Tensor, nn

PAD, BOS, EOS = 0, 2, 3
EPS = 1e-5
"""added to the variance before the root"""


@dataclass
class Config:
    """The paper's base model; what later papers chose instead stands behind each field."""

    vocab_size: int = 37_000
    d_model: int = 512
    n_heads: int = 8
    d_ff: int = 2048
    n_encoder_layers: int = 6  # 0: a language model
    n_decoder_layers: int = 6  # 0: a masked language model
    dropout: float = 0.1
    max_len: int = 512
    norm: str = "post"  # pre: before each sub-layer, and once after the last
    norm_function: str = "layer_norm"  # rms_norm, batch_norm, none
    positions: str = "sinusoidal"  # learned, rope, alibi, none
    activation: str = "relu"  # gelu, swiglu, geglu
    tie_embeddings: bool = True
    scale_embeddings: bool = True
    scale_scores: bool = True
    biases: bool = True
    residual: bool = True
    n_kv_heads: int = 0  # heads of keys and values in self-attention, shared by those of queries; 0: n_heads
    d_key: int = 0  # width of a query and a key; 0: d_model / n_heads
    qk_norm: bool = False  # RMSNorm of queries and keys in self-attention
    window: int = 0  # self-attention sees keys less than this many positions away; 0: all
    rope_base: int = 10_000


def rotation(n: int, width: int, base: int = 10_000) -> tuple[Tensor, Tensor]:
    """Cosines and sines of the angles position / base^(2i / width), (position, width / 2) each."""
    angles = torch.arange(n)[:, None] * base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    return angles.cos(), angles.sin()


def distances(n: int) -> Tensor:
    """How far apart a query and a key stand: (query, key)."""
    return torch.arange(n)[:, None] - torch.arange(n)


class MultiHeadAttention(nn.Module):
    """Section 3.2.2: Concat(head_1, ..., head_h) W_O, where head_i = Attention(Q W_Q, K W_K, V W_V).

    Self-attention may have parts of later models; cross-attention has the paper's alone.
    """

    def __init__(self, config: Config, cross: bool = False) -> None:
        super().__init__()
        d_model, self.heads, biases = config.d_model, config.n_heads, config.biases
        d_v = d_model // self.heads
        d_k = config.d_key or d_v
        self.kv_heads = self.heads if cross else config.n_kv_heads or self.heads
        self.w_q = nn.Linear(d_model, self.heads * d_k, bias=biases)
        self.w_k = nn.Linear(d_model, self.kv_heads * d_k, bias=biases)
        self.w_v = nn.Linear(d_model, self.kv_heads * d_v, bias=biases)
        self.w_o = nn.Linear(self.heads * d_v, d_model, bias=biases)
        self.divisor = math.sqrt(d_k) if config.scale_scores else 1.0
        self.positions = "none" if cross else config.positions
        self.qk_norm = config.qk_norm and not cross
        if self.qk_norm:
            self.q_norm, self.k_norm = nn.RMSNorm(d_k, eps=EPS), nn.RMSNorm(d_k, eps=EPS)
        if self.positions == "rope":
            self.cos, self.sin = (table.float() for table in rotation(config.max_len, d_k, config.rope_base))

    def forward(self, x: Tensor, source: Tensor, mask: Tensor) -> Tensor:
        """Queries from `x`, keys and values from `source`; `mask` is True where a query may look."""
        q = self.split(self.w_q(x), self.heads)
        k = self.split(self.w_k(source), self.kv_heads)
        v = self.split(self.w_v(source), self.kv_heads)
        if self.qk_norm:
            q, k = self.q_norm(q), self.k_norm(k)
        if self.positions == "rope":
            q, k = self.rotate(q), self.rotate(k)
        k, v = (each.repeat_interleave(self.heads // self.kv_heads, dim=1) for each in (k, v))
        return self.w_o(self.attention(q, k, v, mask).transpose(1, 2).flatten(-2))

    def attention(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        """Equation 1: softmax(Q K^T / sqrt(d_k)) V, all heads at once."""
        scores = q @ k.transpose(-2, -1) / self.divisor
        if self.positions == "alibi":  # Press et al. 2022: the further away, the lower, at each head's slope
            slopes = 2.0 ** (-8 * torch.arange(1, self.heads + 1, dtype=torch.float64) / self.heads)
            scores = scores - (slopes[:, None, None] * distances(scores.shape[-1]).abs()).float()
        return scores.masked_fill(~mask, -torch.inf).softmax(dim=-1) @ v

    def rotate(self, x: Tensor) -> Tensor:
        """RoPE (Su et al. 2021): turn each pair of dimensions i and i + d_k / 2 by the angles of its position."""
        cos, sin = self.cos[: x.shape[-2]], self.sin[: x.shape[-2]]
        first, second = x.chunk(2, dim=-1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)

    @staticmethod
    def split(x: Tensor, heads: int) -> Tensor:
        """(batch, position, heads * width) -> (batch, heads, position, width)"""
        return x.unflatten(-1, (heads, -1)).transpose(1, 2)


class FeedForward(nn.Module):
    """Section 3.3, equation 2: max(0, x W_1 + b_1) W_2 + b_2; gated (Shazeer 2020): (act(x W_gate) * x W_1) W_2."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.w_1 = nn.Linear(config.d_model, config.d_ff, bias=config.biases)
        self.w_2 = nn.Linear(config.d_ff, config.d_model, bias=config.biases)
        self.activation = {"relu": F.relu, "gelu": F.gelu, "swiglu": F.silu, "geglu": F.gelu}[config.activation]
        self.gated = config.activation in ("swiglu", "geglu")
        if self.gated:
            self.w_gate = nn.Linear(config.d_model, config.d_ff, bias=config.biases)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.activation(self.w_gate(x)) * self.w_1(x) if self.gated else self.activation(self.w_1(x))
        return self.w_2(hidden)


class BatchNorm(nn.Module):
    """Each dimension by its mean and variance over the tokens of training (Ioffe and Szegedy 2015)."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))
        self.register_buffer("mean", torch.zeros(d_model))
        self.register_buffer("variance", torch.ones(d_model))

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.flatten(0, -2)
        return F.batch_norm(tokens, self.mean, self.variance, self.weight, self.bias, eps=EPS).view_as(x)


def new_norm(config: Config) -> nn.Module:
    """A norm with the weights that it begins with."""
    norms: dict[str, Callable[[int], nn.Module]] = {
        "layer_norm": lambda d_model: nn.LayerNorm(d_model, eps=EPS, bias=config.biases),
        "rms_norm": lambda d_model: nn.RMSNorm(d_model, eps=EPS),
        "batch_norm": BatchNorm,
        "none": nn.Identity,
    }
    return norms[config.norm_function](config.d_model)


class Residual(nn.Module):
    """Sections 3.1 and 5.4: LayerNorm(x + Dropout(Sublayer(x))); pre-norm: x + Dropout(Sublayer(LayerNorm(x)))."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.pre, self.adds = config.norm == "pre", config.residual
        self.norm, self.dropout = new_norm(config), nn.Dropout(config.dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        update = self.dropout(sublayer(self.norm(x) if self.pre else x))
        added = x + update if self.adds else update
        return added if self.pre else self.norm(added)


class Layer(nn.Module):
    """Section 3.1: self-attention, in the paper's decoder cross-attention over the memory, feed-forward."""

    def __init__(self, config: Config, cross: bool) -> None:
        super().__init__()
        self.self_attn, self.self_attn_residual = MultiHeadAttention(config), Residual(config)
        if cross:
            self.cross_attn, self.cross_attn_residual = MultiHeadAttention(config, cross=True), Residual(config)
        self.feed_forward, self.feed_forward_residual = FeedForward(config), Residual(config)

    def forward(self, x: Tensor, mask: Tensor, memory: Tensor | None, memory_mask: Tensor | None) -> Tensor:
        x = self.self_attn_residual(x, lambda x: self.self_attn(x, x, mask))
        if memory is not None:
            x = self.cross_attn_residual(x, lambda x: self.cross_attn(x, memory, memory_mask))
        return self.feed_forward_residual(x, self.feed_forward)


class Stack(nn.Module):
    """N identical layers: an encoder, or a decoder."""

    def __init__(self, config: Config, n_layers: int, cross: bool = False) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(config, cross) for _ in range(n_layers))
        self.final_norm = new_norm(config) if config.norm == "pre" else nn.Identity()

    def forward(self, x: Tensor, mask: Tensor, memory: Tensor | None = None, memory_mask: Tensor | None = None):
        for layer in self.layers:
            x = layer(x, mask, memory, memory_mask)
        return self.final_norm(x)


class Embedding(nn.Module):
    """Sections 3.4, 3.5 and 5.4: Dropout(Embedding(token) sqrt(d_model) + PE(position))."""

    def __init__(self, config: Config, tokens: nn.Embedding) -> None:
        super().__init__()
        self.tokens, self.dropout = tokens, nn.Dropout(config.dropout)
        self.scale = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
        self.positions: Any = None
        if config.positions == "learned":
            self.positions = nn.Parameter(torch.zeros(config.max_len, config.d_model))
        if config.positions == "sinusoidal":  # sines in even dimensions, cosines in odd ones
            cos, sin = rotation(config.max_len, config.d_model)
            self.positions = torch.stack([sin, cos], dim=-1).flatten(-2).float()

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) * self.scale
        return self.dropout(x if self.positions is None else x + self.positions[: tokens.shape[1]])


class Transformer(nn.Module):
    """Figure 1. Without an encoder a language model, without a decoder a masked language model."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        encodes, decodes = config.n_encoder_layers > 0, config.n_decoder_layers > 0
        tokens = nn.Embedding(config.vocab_size, config.d_model)
        self.output = nn.Linear(config.d_model, config.vocab_size, bias=False)
        if encodes:
            self.src_embedding = Embedding(config, tokens)
            self.encoder = Stack(config, config.n_encoder_layers)
        if decodes:
            own = encodes and not config.tie_embeddings
            self.tgt_embedding = Embedding(config, nn.Embedding(config.vocab_size, config.d_model) if own else tokens)
            self.decoder = Stack(config, config.n_decoder_layers, cross=encodes)
        if config.tie_embeddings:
            self.output.weight = tokens.weight

    def forward(self, src: Tensor | None = None, tgt: Tensor | None = None) -> Tensor:
        """Token ids (batch, position) -> logits: at t of `tgt` those of token t + 1, without it those of each token."""
        memory = src_mask = None
        if src is not None:
            src_mask = (src != PAD)[:, None, None]
            x = memory = self.encoder(self.src_embedding(src), src_mask & self.near(src))
        if tgt is not None:
            causal = distances(tgt.shape[1]) >= 0
            x = self.decoder(
                self.tgt_embedding(tgt), (tgt != PAD)[:, None, None] & causal & self.near(tgt), memory, src_mask
            )
        return self.output(x)

    def near(self, tokens: Tensor) -> Tensor:
        """Keys in the window around each query; all of them in the paper."""
        n = tokens.shape[1]
        return distances(n).abs() < (self.config.window or n)


def load(folder: Path) -> tuple[Transformer, SentencePieceProcessor]:
    """The trained weights in the network, and the vocabulary."""
    model = Transformer(Config(**json.loads((folder / "config.json").read_text("utf-8"))["model"])).eval()
    weights = model.state_dict()
    for name, values in load_file(folder / "model.safetensors").items():
        weights[name].copy_(values)
    return model, SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))


@torch.inference_mode()
def run(model: Transformer, vocabulary: SentencePieceProcessor, text: str) -> str:
    """Translate, continue (by up to 30 tokens) or fill in a text: the most probable token each time."""
    ids = vocabulary.encode(text)
    if not model.config.n_decoder_layers:
        logits = model(torch.tensor([[BOS, *ids, EOS]]))[0, 1:-1]
        logits[:, : EOS + 2] = -torch.inf
        return vocabulary.decode(logits.argmax(dim=-1).tolist())
    translates = model.config.n_encoder_layers > 0
    src, tgt = (torch.tensor([[*ids, EOS]]), [BOS]) if translates else (None, [BOS, *ids])
    for _ in range(2 * len(ids) + 12 if translates else 30):
        logits = model(src, torch.tensor([tgt]))[0, -1]
        logits[:EOS] = -torch.inf
        if int(logits.argmax()) == EOS:
            break
        tgt.append(int(logits.argmax()))
    return vocabulary.decode(tgt[1:])


if __name__ == "__main__":
    sys.stdout.write(run(*load(Path(sys.argv[1])), sys.argv[2]) + "\n")
