"""The paper's equations written a second time, in numpy and double precision: what the model is held against."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from model.transformer import Transformer

Array = np.ndarray
Address = tuple[str, int]


@dataclass
class PaperModel:
    """Runs `model`'s weights on one sentence pair, with a temperature and a gate for each head.

    `taus` and `gates` map (kind, layer) to (heads,) arrays; what is not named is 1.
    """

    model: Transformer
    taus: Mapping[Address, Array] = field(default_factory=dict)
    gates: Mapping[Address, Array] = field(default_factory=dict)
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
        if self.config.positions == "learned":
            return scaled + self.weights[f"{name}.positions"][: len(ids)]
        # The model keeps its sinusoids in single precision.
        return scaled + positional_encoding(len(ids), self.config.d_model).astype(np.float32)

    def _stack(self, stack: str, x: Array, memory: Array | None) -> Array:
        layers = self.config.n_encoder_layers if stack == "encoder" else self.config.n_decoder_layers
        kind = "encoder_self" if memory is None else "decoder_self"
        for layer in range(layers):
            path = f"{stack}.layers.{layer}"
            x = self._residual(
                f"{path}.self_attn_residual",
                x,
                lambda x, path=path, layer=layer: self._attention(f"{path}.self_attn", (kind, layer), x, x),
            )
            if memory is not None:
                x = self._residual(
                    f"{path}.cross_attn_residual",
                    x,
                    lambda x, path=path, layer=layer: self._attention(
                        f"{path}.cross_attn", ("cross", layer), x, memory
                    ),
                )
            x = self._residual(
                f"{path}.feed_forward_residual", x, lambda x, path=path: self._feed_forward(f"{path}.feed_forward", x)
            )
        return self._norm(f"{stack}.final_norm", x) if self.config.norm == "pre" else x

    def _residual(self, path: str, x: Array, sublayer) -> Array:
        if self.config.norm == "pre":
            return x + sublayer(self._norm(f"{path}.norm", x))
        return self._norm(f"{path}.norm", x + sublayer(x))

    def _attention(self, path: str, address: Address, x: Array, source: Array) -> Array:
        q, k, v = (self._linear(f"{path}.w_{name}", y) for name, y in (("q", x), ("k", source), ("v", source)))
        d_k, heads = self.config.d_k, []
        taus = self.taus.get(address, np.ones(self.config.n_heads))
        gates = self.gates.get(address, np.ones(self.config.n_heads))
        for head in range(self.config.n_heads):
            columns = slice(head * d_k, (head + 1) * d_k)
            scores = q[:, columns] @ k[:, columns].T / math.sqrt(d_k)
            if address[0] == "decoder_self":
                scores = np.where(np.tri(len(x), dtype=bool), scores, -np.inf)
            heads.append(softmax(scores / taus[head]))
        self.patterns[address] = np.stack(heads)
        z = [
            gate * pattern @ v[:, i * d_k : (i + 1) * d_k]
            for i, (gate, pattern) in enumerate(zip(gates, heads, strict=True))
        ]
        return self._linear(f"{path}.w_o", np.concatenate(z, axis=1))

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
