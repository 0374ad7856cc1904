"""What one run of the model looked like inside: frozen numpy arrays and strings, no torch.

Positions count from 0, layers and heads are numbered as in the code, from 0. A "piece" is a token of
the vocabulary as text; U+2581 at its start marks the start of a word.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Projections:
    """The learned matrices of one multi-head attention (paper, section 3.2.2), cut into its heads."""

    w_q: Array
    """(heads, d_model, d_k): head i's q is x @ w_q[i] + b_q[i]"""
    w_k: Array
    """(heads, d_model, d_k)"""
    w_v: Array
    """(heads, d_model, d_k)"""
    b_q: Array
    """(heads, d_k)"""
    b_k: Array
    """(heads, d_k)"""
    b_v: Array
    """(heads, d_k)"""
    w_o: Array
    """(heads, d_k, d_model): the attention's output is sum_i z[i] @ w_o[i] + b_o"""
    b_o: Array
    """(d_model,)"""


@dataclass(frozen=True)
class Attention:
    """One multi-head attention of the run: equation 1 of the paper, with every result on the way."""

    kind: str
    """encoder_self, decoder_self or cross"""
    layer: int
    query_tokens: tuple[str, ...]
    """piece of each query position; in the decoder, what that row reads"""
    key_tokens: tuple[str, ...]
    """piece of each key position"""
    query_input: Array
    """(query, d_model): what W_Q is applied to"""
    key_input: Array
    """(key, d_model): what W_K and W_V are applied to"""
    projections: Projections
    q: Array
    """(heads, query, d_k): query_input W_Q + b_Q"""
    k: Array
    """(heads, key, d_k): key_input W_K + b_K"""
    v: Array
    """(heads, key, d_k): key_input W_V + b_V"""
    scores: Array
    """(heads, query, key): q k^T, unscaled"""
    scaled: Array
    """(heads, query, key): scores / sqrt(d_k), before mask and temperature"""
    mask: Array
    """bool (heads, query, key): True = may look"""
    temperature: Array
    """(heads,): tau inside the run; 1 unless an intervention set it"""
    pattern: Array
    """(heads, query, key): softmax(scaled / tau) over the keys that the mask allows; the attention weights"""
    z: Array
    """(heads, query, d_k): pattern v"""
    out: Array
    """(query, d_model): concat(z) W_O + b_O"""

    def __post_init__(self) -> None:
        heads, (queries, keys) = len(self.q), (len(self.query_tokens), len(self.key_tokens))
        d_k, d_model = self.q.shape[-1], self.out.shape[-1]
        square, per_query, per_key = (heads, queries, keys), (heads, queries, d_k), (heads, keys, d_k)
        shapes = {"q": per_query, "k": per_key, "v": per_key, "z": per_query, "temperature": (heads,)}
        shapes |= dict.fromkeys(("scores", "scaled", "mask", "pattern"), square)
        shapes |= {"query_input": (queries, d_model), "key_input": (keys, d_model), "out": (queries, d_model)}
        _check_shapes(
            self, shapes, f"{queries} query tokens {self.query_tokens} and {keys} key tokens {self.key_tokens}"
        )

    @property
    def n_heads(self) -> int:
        return len(self.q)

    @property
    def d_k(self) -> int:
        return self.q.shape[-1]

    @property
    def concat(self) -> Array:
        """(query, heads * d_k): the heads' z side by side, head 0 first."""
        return self.z.transpose(1, 0, 2).reshape(len(self.query_tokens), -1)


@dataclass(frozen=True)
class Embedded:
    """The input of a stack (sections 3.4, 3.5)."""

    embedding: Array
    """(position, d_model): embedding of each token, times sqrt(d_model)"""
    positional: Array
    """(position, d_model): what is added for the position"""
    sum: Array
    """(position, d_model): embedding + positional"""


@dataclass(frozen=True)
class SubLayer:
    """One residual block: LayerNorm(x + Sublayer(x)), or x + Sublayer(LayerNorm(x)) with pre-norm."""

    stack: str
    """encoder or decoder"""
    layer: int
    name: str
    """self_attn, cross_attn or feed_forward"""
    before: Array
    """(position, d_model): x, the residual stream that comes in"""
    out: Array
    """(position, d_model): what the sub-layer itself computed"""
    added: Array
    """(position, d_model): x + out"""
    normed: Array
    """(position, d_model): LayerNorm of `added` (post-norm) or of `before` (pre-norm)"""
    after: Array
    """(position, d_model): the residual stream that goes on"""
    hidden: Array | None
    """(position, d_ff): activations inside a feed-forward, None elsewhere"""


@dataclass(frozen=True)
class Candidate:
    """A token that the model considered at one position."""

    token: str
    id: int
    probability: float
    """of the whole vocabulary"""


@dataclass(frozen=True)
class Trace:
    """One teacher-forced run on a source and a finished target, with everything inside.

    Row t of the decoder reads target token t (the start token at t = 0) and predicts the next one.
    """

    checkpoint: str
    checkpoint_hash: str
    """SHA-256 of the weights"""
    device: str
    interventions: tuple[Any, ...]
    """what was changed in the model for this run, in order"""
    source: str
    translation: str
    """the target as text: decoded by the model, or typed"""
    src_tokens: tuple[str, ...]
    """source pieces, the end token last"""
    src_ids: tuple[int, ...]
    tgt_tokens: tuple[str, ...]
    """what each decoder row reads: the start token, then the target but for its last token"""
    tgt_ids: tuple[int, ...]
    next_tokens: tuple[str, ...]
    """the target token that follows each decoder row: what it should predict"""
    next_ids: tuple[int, ...]
    src_embedded: Embedded
    tgt_embedded: Embedded
    attentions: Mapping[tuple[str, int], Attention]
    """by (kind, layer)"""
    sublayers: tuple[SubLayer, ...]
    """in the order in which they ran"""
    memory: Array
    """(source position, d_model): the encoder's output"""
    logits: Array
    """(target position, vocabulary)"""
    candidates: tuple[tuple[Candidate, ...], ...]
    """for each target position the most probable next tokens, best first"""

    def __post_init__(self) -> None:
        rows = len(self.tgt_tokens)
        shapes = {"logits": (rows, self.logits.shape[-1]), "memory": (len(self.src_tokens), self.memory.shape[-1])}
        _check_shapes(self, shapes, f"source tokens {self.src_tokens} and target tokens {self.tgt_tokens}")
        if not len(self.next_tokens) == len(self.candidates) == rows:
            raise ValueError(
                f"{len(self.next_tokens)} next tokens {self.next_tokens} for {rows} rows {self.tgt_tokens}"
            )

    def attention(self, kind: str, layer: int) -> Attention:
        """The attention of `kind` (encoder_self, decoder_self, cross) in `layer`.

        Raises:
            ValueError: the model has no such attention; the sentence lists what it has.
        """
        if (kind, layer) not in self.attentions:
            found = ", ".join(f"{kind} {layer}" for kind, layer in self.attentions)
            raise ValueError(f"no attention {kind!r} in layer {layer!r}; there are {found}")
        return self.attentions[kind, layer]

    @property
    def probabilities(self) -> Array:
        """(target position, vocabulary): softmax of the logits, in double precision."""
        return probabilities(self.logits)

    @property
    def target_probabilities(self) -> Array:
        """(target position,): p(next target token | source, target up to here), in double precision."""
        return self.probabilities[np.arange(len(self.next_ids)), list(self.next_ids)]

    @property
    def target_log_probabilities(self) -> Array:
        """(target position,): the same as natural logarithms; their sum is log p(target | source)."""
        return log_probabilities(self.logits)[np.arange(len(self.next_ids)), list(self.next_ids)]


def probabilities(logits: Array) -> Array:
    """Softmax over the last axis, in double precision; the shape of `logits`."""
    shifted = logits.astype(np.float64)
    weights = np.exp(shifted - shifted.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def log_probabilities(logits: Array) -> Array:
    """Natural logarithm of the softmax over the last axis, in double precision; the shape of `logits`."""
    shifted = logits.astype(np.float64)
    shifted -= shifted.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def _check_shapes(record: object, shapes: Mapping[str, tuple[int, ...]], tokens: str) -> None:
    for name, shape in shapes.items():
        found = getattr(record, name).shape
        if found != shape:
            raise ValueError(f"{type(record).__name__}.{name} has shape {found}, expected {shape} for {tokens}")
