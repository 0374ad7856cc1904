"""The paper's equations written a second time, in numpy and double precision: what the model is held against."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from model.network.encoder_decoder import Transformer

Array = np.ndarray
Address = tuple[str, int]


@dataclass
class PaperModel:
    """Runs `model`'s weights on one sentence pair, with a temperature and a gate for each head.

    `taus` and `gates` map (kind, layer) to (heads,) arrays; what is not named is 1. `changes` maps
    ((kind, layer), name) to what is made there of `scaled`, `mask`, `pattern`, (heads, query, key), or `v`,
    (heads, key, d_k).
    """

    model: Transformer
    taus: Mapping[Address, Array] = field(default_factory=dict)
    gates: Mapping[Address, Array] = field(default_factory=dict)
    changes: Mapping[tuple[Address, str], Callable[[Array], Array]] = field(default_factory=dict)
    positions: Mapping[str, Array] = field(default_factory=dict)
    """src_embedding or tgt_embedding -> the positional encodings to add, (position, d_model)"""
    off: frozenset[str] = frozenset()
    """paths of the sub-layers whose output is 0"""
    unconnected: frozenset[str] = frozenset()
    """paths of the sub-layers without a residual connection"""
    unnormed: frozenset[str] = frozenset()
    """paths of the sub-layers without a norm"""
    patterns: dict[Address, Array] = field(default_factory=dict)
    """(heads, query, key) of each attention, filled by `logits`"""

    def __post_init__(self) -> None:
        self.config = self.model.config
        self.weights = {path: tensor.double().numpy() for path, tensor in self.model.state_dict().items()}

    def logits(self, src: Sequence[int], tgt: Sequence[int]) -> Array:
        """(target position, vocabulary)"""
        memory = self._stack("encoder", self._embedded("src_embedding", src), None)
        x = self._stack("decoder", self._embedded("tgt_embedding", tgt), memory)
        return x @ self.weights["output.weight"].T

    def _embedded(self, name: str, ids: Sequence[int]) -> Array:
        scaled = self.weights[f"{name}.tokens.weight"][list(ids)] * math.sqrt(self.config.d_model)
        if name in self.positions:
            return scaled + self.positions[name]
        if self.config.positions == "learned":
            return scaled + self.weights[f"{name}.positions"][: len(ids)]
        # The model keeps its sinusoids in single precision.
        return scaled + positional_encoding(len(ids), self.config.d_model).astype(np.float32)

    def _stack(self, stack: str, x: Array, memory: Array | None) -> Array:
        layers = self.config.n_encoder_layers if stack == "encoder" else self.config.n_decoder_layers
        for layer in range(layers):
            path = f"{stack}.layers.{layer}"
            for name, sublayer in self._sublayers(path, layer, memory):
                x = self._residual(f"{path}.{name}_residual", x, sublayer)
        return self._norm(f"{stack}.final_norm", x) if self.config.norm == "pre" else x

    def _sublayers(self, path: str, layer: int, memory: Array | None) -> Iterator[tuple[str, Callable]]:
        kind = "encoder_self" if memory is None else "decoder_self"
        yield "self_attn", lambda x: self._attention(f"{path}.self_attn", (kind, layer), x, x)
        if memory is not None:
            yield "cross_attn", lambda x: self._attention(f"{path}.cross_attn", ("cross", layer), x, memory)
        yield "feed_forward", lambda x: self._feed_forward(f"{path}.feed_forward", x)

    def _residual(self, path: str, x: Array, sublayer) -> Array:
        name = path.removesuffix("_residual")
        norm = (lambda vectors: vectors) if name in self.unnormed else partial(self._norm, f"{path}.norm")
        y = sublayer(norm(x) if self.config.norm == "pre" else x)
        y = np.zeros_like(y) if name in self.off else y
        x = y if name in self.unconnected else x + y
        return x if self.config.norm == "pre" else norm(x)

    def _attention(self, path: str, address: Address, x: Array, source: Array) -> Array:
        q, k, v = (
            self._heads(self._linear(f"{path}.w_{name}", y)) for name, y in (("q", x), ("k", source), ("v", source))
        )
        scaled, v = q @ k.transpose(0, 2, 1) / self.config.score_divisor, self._changed(address, "v", v)
        causal = np.tri(len(x), dtype=bool) if address[0] == "decoder_self" else np.ones((len(x), len(source)), bool)
        mask = self._changed(address, "mask", np.broadcast_to(causal, scaled.shape).copy())
        taus, gates = (of.get(address, np.ones(self.config.n_heads))[:, None, None] for of in (self.taus, self.gates))
        masked = np.where(mask, self._changed(address, "scaled", scaled) / taus, -np.inf)
        self.patterns[address] = self._changed(address, "pattern", softmax(masked))
        z = gates * self.patterns[address] @ v
        return self._linear(f"{path}.w_o", np.concatenate(list(z), axis=1))

    def _heads(self, x: Array) -> Array:
        """(position, d_model) -> (heads, position, d_k)"""
        return np.stack(np.split(x, self.config.n_heads, axis=1))

    def _changed(self, address: Address, name: str, computed: Array) -> Array:
        change = self.changes.get((address, name))
        return change(computed) if change else computed

    def _feed_forward(self, path: str, x: Array) -> Array:
        hidden = self._linear(f"{path}.w_1", x)
        if self.config.activation == "relu":
            hidden = np.maximum(hidden, 0)
        else:
            hidden = hidden * 0.5 * (1 + np.vectorize(math.erf)(hidden / math.sqrt(2)))
        return self._linear(f"{path}.w_2", hidden)

    def _linear(self, path: str, x: Array) -> Array:
        return x @ self.weights[f"{path}.weight"].T + self.weights[f"{path}.bias"]

    def _norm(self, path: str, x: Array) -> Array:
        centred = x - x.mean(axis=-1, keepdims=True)
        normed = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
        return normed * self.weights[f"{path}.weight"] + self.weights[f"{path}.bias"]


def positional_encoding(length: int, d_model: int) -> Array:
    """PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos of the same, one number at a time."""
    encoding = np.zeros((length, d_model))
    for pos in range(length):
        for i in range(d_model // 2):
            angle = pos / 10_000 ** (2 * i / d_model)
            encoding[pos, 2 * i], encoding[pos, 2 * i + 1] = math.sin(angle), math.cos(angle)
    return encoding


def softmax(x: Array) -> Array:
    """Over the last axis."""
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)
