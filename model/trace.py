"""What one run of the model looked like, inside: numpy arrays, strings and tuples, each with its shape.

Positions, layers and heads count from 0, as in the code. Tokens are pieces of the vocabulary as text; U+2581 at the
start of a piece marks the start of a word.
"""

import base64
import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from html import escape
from io import BytesIO
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal
from zipfile import BadZipFile, is_zipfile
from zlib import error as ZlibError

import numpy as np

from model.kinds import KIND_TITLES as KIND_TITLES
from model.kinds import Array, Kind, StackName, path_of
from model.language import Refusal, sentence, sentence_of
from model.on_demand import MappingOnDemand, SequenceOnDemand, joined

MOST_BYTES = 8 * 2**30
"""of all arrays in a file that is loaded: a forged one can be a thousand times larger than it looks"""
MOST_DRAWN, FRAME = 256, 200
"""tokens of a text whose picture a notebook shows; grey of the lines between its heads"""
CHAIN_TOLERANCE = 5e-5
"""largest relative error of a step in single precision"""
_DAMAGE = (
    BadZipFile,
    ZlibError,
    EOFError,
    MemoryError,
    RuntimeError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)
"""what reading a damaged or forged file raises"""
SUBLAYER_TITLES: Mapping[str, str] = {
    "self_attn": "self-attention",
    "cross_attn": "cross-attention",
    "feed_forward": "feed-forward",
}
"""what each sub-layer is called on screen"""


@dataclass(frozen=True)
class Turn:
    """What was said at one time in a chat."""

    role: str
    """who said it: system, user or assistant"""
    text: str


Prompt = str | tuple[Turn, ...]
"""what a model is given: a text, or the turns of a chat, of which its chat template makes one"""


@dataclass(frozen=True)
class Tokens:
    """A text as the model reads or writes it, token by token."""

    text: str
    ids: tuple[int, ...]
    labels: tuple[str, ...]
    """the pieces; U+2581 starts a word"""
    special: tuple[bool, ...]
    """whether each token stands for no text: start, end, padding"""
    spans: tuple[tuple[int, int] | None, ...]
    """first character of `text` that each token covers, and the one after its last; None for special tokens"""
    words: tuple[int | None, ...]
    """number of the word that each token belongs to; None for special tokens"""
    segments: tuple[int, ...] | None = None
    """token type, such as BERT's sentence A and B"""
    roles: tuple[str, ...] | None = None
    """of a chat: system, user, assistant, template or generation prompt"""
    turns: tuple[Turn, ...] | None = None
    """of a chat: what was said before the answer that the model writes"""
    prompt_length: int | None = None
    """how many tokens were given; the others were generated"""

    def __len__(self) -> int:
        return len(self.ids)

    def between(self, start: int, end: int) -> "Tokens":
        """The tokens from `start` to before `end`, as part of the same text."""
        lists = ("ids", "labels", "special", "spans", "words", "segments", "roles")
        parts = {name: part[start:end] for name in lists if (part := getattr(self, name)) is not None}
        return replace(self, **parts)


@dataclass(frozen=True)
class Projections:
    """The learned matrices of one multi-head attention (paper, section 3.2.2), cut into its heads."""

    w_q: Array
    """(heads, d_model, d_k): head i's q is x @ w_q[i] + b_q[i]"""
    w_k: Array
    """(heads, d_model, d_k)"""
    w_v: Array
    """(heads, d_model, d_v)"""
    b_q: Array
    """(heads, d_k)"""
    b_k: Array
    """(heads, d_k)"""
    b_v: Array
    """(heads, d_v)"""
    w_o: Array
    """(heads, d_v, d_model): the attention's output is sum_i z[i] @ w_o[i] + b_o"""
    b_o: Array
    """(d_model,)"""
    biases: bool = True
    """whether the model learned the biases; if not, they are 0"""
    query_factor: float = 1.0
    """by which the model multiplies its queries after the projection; `w_q` and `b_q` contain it. OPT divides by
    sqrt(d_k) in this way"""


@dataclass(frozen=True)
class Rotary:
    """What RoPE did to queries and keys (Su et al. 2021): pairs of dimensions were turned by an angle."""

    q: Array
    """(heads, query, d_k): before the rotation"""
    k: Array
    """(heads, key, d_k): before the rotation"""
    cos: Array
    """(position, pairs): of the angle by which each pair was turned"""
    sin: Array
    """(position, pairs)"""
    interleaved: bool = False
    """whether neighbours, 2 i and 2 i + 1, are a pair; else i and i + pairs are. Dimensions beyond stay as they are"""
    start: int = 0
    """the first dimension that is turned; those before it stay as they are, too"""

    def turn(self, x: Array) -> Array:
        """(heads, position, d_k), turned; in the precision of `x`."""
        cos, sin = (table[: x.shape[-2]] for table in (self.cos, self.sin))
        before, turned, rest = np.split(x, [self.start, self.start + 2 * cos.shape[-1]], axis=-1)
        x1, x2 = np.moveaxis(self.pairs(x), -1, 0)
        first, second = x1 * cos - x2 * sin, x2 * cos + x1 * sin
        joined = np.stack([first, second], axis=-1).reshape(turned.shape) if self.interleaved else (first, second)
        return np.concatenate([before, *([joined] if self.interleaved else joined), rest], axis=-1)

    def pairs(self, x: Array) -> Array:
        """(..., d_k) -> (..., pair, 2): the pairs of dimensions that are rotated together."""
        turned = x[..., self.start : self.start + 2 * self.cos.shape[-1]]
        halves = (turned[..., ::2], turned[..., 1::2]) if self.interleaved else np.split(turned, 2, axis=-1)
        return np.stack(halves, axis=-1)


@dataclass(frozen=True)
class Latent:
    """How an attention with latent vectors makes its queries, keys or values: x A, RMSNorm, B (DeepSeek-AI 2024,
    "DeepSeek-V2", section 2.1).

    With the norm's divisor that each position had in the run, the three steps are one matrix a head, A diag(gamma) B:
    that is the one in `Projections`, and what it gives is divided by `divisors`.
    """

    w_a: Array
    """(d_model, rank): A"""
    b_a: Array
    """(rank,)"""
    compressed: Array
    """(position, rank): x A + b_A"""
    norm: "Norm"
    normed: Array
    """(position, rank): what B reads"""
    w_b: Array
    """(heads, rank, width): B, 0 in the dimensions that do not pass through it"""
    direct: Array
    """bool (width,): dimensions that x gives without norm and B, such as those of DeepSeek's keys that are rotated"""
    made: Array
    """(heads, position, width): what the three steps, or x itself, gave; before any rotation"""

    @property
    def divisors(self) -> Array:
        """(position, width): what the norm divided by; 1 in the dimensions that do not pass through it."""
        return np.where(self.direct, 1.0, self.norm.divides_by(self.compressed.astype(np.float64)))

    @property
    def beside(self) -> Array:
        """(heads, position, width): what x gave without norm and B; 0 in the other dimensions."""
        return np.where(self.direct, self.made, 0).astype(self.made.dtype)

    @property
    def linear(self) -> Array:
        """(heads, position, width): x W + b, before it is divided."""
        return (self.made * self.divisors).astype(self.made.dtype)


@dataclass(frozen=True)
class Latents:
    """Those of an attention; None where x makes them without a latent vector."""

    q: Latent | None
    k: Latent | None
    v: Latent | None


@dataclass(frozen=True)
class QKNorm:
    """What a norm of queries and keys did to them.

    gamma is (d_k,) where all heads share it, (heads, 1, d_k) where each has its own (StableLM 2), and
    (distinct heads * d_k,) where one norm spans the vectors of all heads (OLMo 2).
    """

    q: Array
    """(heads, query, d_k): before the norm"""
    k: Array
    """(heads, key, d_k): before the norm"""
    q_norm: "Norm"
    k_norm: "Norm"
    after_rotation: bool = False
    """whether the norm follows the rotation, as in Hunyuan; else it precedes it"""

    def apply(self, name: str) -> Array:
        """The norm of `q` or `k`, (heads, position, d_k), in double precision."""
        x, norm = getattr(self, name), getattr(self, f"{name}_norm")
        heads, n, width = x.shape
        if norm.gamma.ndim > 1 or norm.gamma.size == width:
            return norm(x)
        # Query heads share keys: each distinct one counts once in a norm that spans them all.
        sharing = heads * width // norm.gamma.size
        together = norm(x[::sharing].transpose(1, 0, 2).reshape(n, -1))
        return together.reshape(n, -1, width).transpose(1, 0, 2).repeat(sharing, axis=0)


@dataclass(frozen=True)
class Attention:
    """One multi-head attention of the run: equation 1 of the paper, with every intermediate result.

    scores = q k^T; scaled = scores * scale; pre_softmax = softcap(scaled) + bias;
    pattern = softmax(pre_softmax / temperature) over the keys that the mask allows; z = pattern v.
    """

    kind: str
    """encoder_self, decoder_self or cross"""
    layer: int
    query_tokens: tuple[str, ...]
    """piece at each query position; in the decoder, the token that the row reads"""
    key_tokens: tuple[str, ...]
    """piece at each key position"""
    query_input: Array
    """(query, d_model): what W_Q is applied to"""
    key_input: Array
    """(key, d_model): what W_K and W_V are applied to"""
    projections: Projections | None
    """None where no single matrix makes the queries, keys or values, or reads the heads' results"""
    q: Array
    """(heads, query, d_k): query_input W_Q + b_Q, then what `qk_norm`, `rotary` and `query_scale` say"""
    k: Array
    """(heads, key, d_k): key_input W_K + b_K, then what `qk_norm` and `rotary` say"""
    v: Array
    """(heads, key, d_v): key_input W_V + b_V"""
    scores: Array
    """(heads, query, key): q k^T, unscaled"""
    scaled: Array
    """(heads, query, key): scores * scale, before mask and temperature"""
    mask: Array
    """bool (heads, query, key): True = may attend"""
    temperature: Array
    """(heads,): tau, by which the run divided what its softmax reads; 1 unless an intervention changed it"""
    pattern: Array
    """(heads, query, key): the attention weights"""
    z: Array
    """(heads, query, d_v): pattern v"""
    out: Array
    """(query, d_model): concat(z) W_O + b_O"""
    scale: float
    """1 / sqrt(d_k) in the paper"""
    query_special: tuple[bool, ...]
    """whether each query token stands for no text, such as <s>"""
    key_special: tuple[bool, ...]
    causal: bool = False
    """whether a query sees no key after its own position"""
    crosses: bool = False
    """whether queries and keys belong to two different texts"""
    predicts: Tokens | None = None
    """what each query's row should predict; None where rows predict nothing, or the token at their own position"""
    softcap: float | None = None
    """softcap(x) = softcap * tanh(x / softcap); None: no soft cap"""
    bias: Array | None = None
    """(heads, query, key): added before the softmax, such as a relative position bias; None: nothing is"""
    sink: Array | None = None
    """(heads,): a logit that takes a share of each row without being a key; None: rows sum to 1"""
    window: int | None = None
    """sliding window, as `mask` has it: a query sees keys less than so many positions away; None: it sees all keys, or
    those before it"""
    kv_head: tuple[int, ...] | None = None
    """(heads,): the key/value head that each query head reads; k, v, W_K and W_V are repeated accordingly"""
    rotary: Rotary | None = None
    """None: queries and keys were not rotated"""
    qk_norm: QKNorm | None = None
    """None: queries and keys were not normalised"""
    query_words: tuple[int | None, ...] | None = None
    """number of the word that each query token belongs to, as `Tokens.words`; None in a file of an earlier version"""
    key_words: tuple[int | None, ...] | None = None
    query_scale: Array | None = None
    """(query,): by which the model multiplied the query of each position, after rotation and norm, such as the growth
    with the position in Ministral 3; None: by nothing"""
    latents: Latents | None = None
    """None: queries, keys and values are x W, without a norm in between"""

    def __post_init__(self) -> None:
        heads, (queries, keys) = len(self.q), (len(self.query_tokens), len(self.key_tokens))
        d_k, d_v, d_model = self.d_k, self.v.shape[-1], self.out.shape[-1]
        square = (heads, queries, keys)
        shapes = {"q": (heads, queries, d_k), "k": (heads, keys, d_k), "temperature": (heads,)}
        shapes |= {"v": (heads, keys, d_v), "z": (heads, queries, d_v)}
        shapes |= dict.fromkeys(("scores", "scaled", "mask", "pattern"), square)
        shapes |= {"query_input": (queries, d_model), "key_input": (keys, d_model), "out": (queries, d_model)}
        shapes |= {"bias": square} if self.bias is not None else {}
        shapes |= {"sink": (heads,)} if self.sink is not None else {}
        shapes |= {"query_scale": (queries,)} if self.query_scale is not None else {}
        _check_shapes(
            self, shapes, f"{queries} query tokens {self.query_tokens} and {keys} key tokens {self.key_tokens}"
        )

    def recompute(self, name: str, multiply: Callable[[Array, Array], Array] = np.matmul) -> list[tuple[Array, Array]]:
        """(computed from the step before it, shown) of each step from the input to `q`, `k` or `v`, or from `z` to
        `out`; in double precision, without what interventions change. `multiply` is the product of two matrices in that
        precision.

        Raises:
            ValueError: the matrices could not be read.
        """
        learned = self.projections
        if learned is None:
            raise Refusal("The matrices of {kind} {layer} could not be read.", kind=self.kind, layer=self.layer)
        if name == "out":
            z, w_o = (x.astype(np.float64) for x in (self.z, learned.w_o))
            return [(multiply(z, w_o).sum(axis=0) + learned.b_o, self.out)]
        x = self.query_input if name == "q" else self.key_input
        w, b = getattr(learned, f"w_{name}"), getattr(learned, f"b_{name}")
        computed, steps = multiply(x.astype(np.float64), w.astype(np.float64)) + b[:, None], []
        if latent := self.latents and getattr(self.latents, name):
            down = multiply(x.astype(np.float64), latent.w_a.astype(np.float64)) + latent.b_a
            up = multiply(latent.normed.astype(np.float64), latent.w_b.astype(np.float64))
            steps += [(down, latent.compressed), (latent.norm(latent.compressed), latent.normed)]
            steps += [(np.where(latent.direct, computed, up), latent.made)]
            computed = computed / latent.divisors
        parts = [] if name == "v" else [part for part in (self.qk_norm, self.rotary) if part is not None]
        if self.qk_norm is not None and self.qk_norm.after_rotation:
            parts.reverse()
        for part in parts:
            before = getattr(part, name)
            steps.append((computed, before))
            computed = part.apply(name) if isinstance(part, QKNorm) else part.turn(before.astype(np.float64))
        if name == "q" and self.query_scale is not None:
            computed = computed * self.query_scale[:, None]
        return [*steps, (computed, getattr(self, name))]

    @property
    def path(self) -> str:
        """Its hook path, such as decoder.layers.1.cross_attn."""
        return path_of(self.kind, self.layer)

    def array(self, name: str) -> Array:
        """The array of that name: a field, also of its parts, such as pattern, w_q, rotary.q or pre_softmax.

        Raises:
            ValueError: this attention has no such array.
        """
        with suppress(AttributeError):
            array = attrgetter(name)(self.projections if name.startswith(("w_", "b_")) else self)
            if isinstance(array, np.ndarray):
                return array
        raise ValueError(f"no array {name!r} in {self.path}")

    def __repr__(self) -> str:
        """On one line, with the shape of its weights."""
        heads, queries, keys = self.pattern.shape
        return f"<Attention {self.kind}, layer {self.layer}: {heads} heads, {queries} queries, {keys} keys>"

    @property
    def n_heads(self) -> int:
        return len(self.q)

    @property
    def d_k(self) -> int:
        return self.q.shape[-1]

    @property
    def undivided(self) -> bool:
        """True if nothing divides the products: neither `scale`, nor the model its queries before."""
        return self.scale == 1 and (self.projections is None or self.projections.query_factor == 1)

    @property
    def divides_by_root(self) -> bool:
        """True if `scale` divides by the square root of d_k, as in the paper, and not by another number."""
        return math.isclose(self.scale, self.d_k**-0.5, rel_tol=1e-4)

    @property
    def reads_scaled(self) -> bool:
        """True if the softmax reads `scaled` itself, without soft cap and bias, as in the paper."""
        return self.softcap is None and self.bias is None

    @property
    def concat(self) -> Array:
        """(query, heads * d_v): the heads' z side by side, head 0 first."""
        return self.z.transpose(1, 0, 2).reshape(len(self.query_tokens), -1)

    @property
    def pre_softmax(self) -> Array:
        """(heads, query, key): what the softmax reads, before mask and temperature; `scaled` itself in the paper."""
        x = self.scaled if self.softcap is None else self.softcap * np.tanh(self.scaled / self.softcap)
        return x if self.bias is None else x + self.bias


@dataclass(frozen=True)
class Embedded:
    """The input of a stack (sections 3.4, 3.5)."""

    embedding: Array
    """(position, d_model): embedding of each token, times sqrt(d_model)"""
    positional: Array
    """(position, d_model): what is added for the position"""
    sum: Array
    """(position, d_model): embedding + positional"""
    normed: Array | None = None
    """(position, d_model): what the first layer reads where that is not the sum, but a norm or a projection of it"""
    norm: "Norm | None" = None
    """the norm that made `normed`"""
    rows: tuple[int, ...] | None = None
    """(position,): which row of its table the model added at each position; negative: a row before that of position 0,
    such as RoBERTa's of padding; None: it adds no table, or the rows could not be read"""

    @property
    def terms(self) -> dict[str, Array]:
        """The two terms and their sum, by name."""
        return {"embedding": self.embedding, "positional": self.positional, "sum": self.sum}

    @property
    def stream(self) -> Array:
        """(position, d_model): where the residual stream begins."""
        return self.sum if self.normed is None else self.normed


@dataclass(frozen=True)
class Norm:
    """gamma (x - mean) / sqrt(variance + eps) + beta (LayerNorm), or gamma x / sqrt(mean of x^2 + eps) (RMSNorm).

    LayerNorm's mean and variance are those of a token's dimensions, BatchNorm's those of a dimension in training.
    """

    kind: Literal["LayerNorm", "RMSNorm", "BatchNorm"]
    gamma: Array
    """(width,): learned factor of each dimension; of each head's own norm (heads, 1, width)"""
    beta: Array | None
    """the same shape: learned offset; None: there is none"""
    eps: float
    mean: Array | None = None
    """(width,) of BatchNorm"""
    variance: Array | None = None
    """(width,) of BatchNorm"""

    def __call__(self, x: Array) -> Array:
        """(..., width), in double precision."""
        x = x.astype(np.float64)
        normed = self.gamma * (x - self.subtracts(x)) / self.divides_by(x)
        return normed if self.beta is None else normed + self.beta

    @property
    def offset(self) -> Array | None:
        """(width,) in double precision: what it adds whatever x is; None: nothing."""
        if self.mean is not None:
            return self(np.zeros_like(self.mean))
        return None if self.beta is None else self.beta.astype(np.float64)

    def subtracts(self, x: Array) -> Array:
        """The mean, to be subtracted from x, (..., width) in double precision; zeros in RMSNorm."""
        if self.mean is not None:
            return self.mean.astype(np.float64)
        return x.mean(axis=-1, keepdims=True) if self.kind == "LayerNorm" else np.zeros((*x.shape[:-1], 1))

    def divides_by(self, x: Array) -> Array:
        """The root that x, (..., width) in double precision, is divided by."""
        if self.variance is not None:
            return np.sqrt(self.variance.astype(np.float64) + self.eps)
        return np.sqrt(((x - self.subtracts(x)) ** 2).mean(axis=-1, keepdims=True) + self.eps)


@dataclass(frozen=True)
class SubLayer:
    """One residual block: LayerNorm(x + Sublayer(x)), or x + Sublayer(LayerNorm(x)) with pre-norm."""

    stack: StackName
    layer: int
    name: str
    """self_attn, cross_attn or feed_forward"""
    before: Array
    """(position, d_model): x, the residual stream that comes in"""
    out: Array
    """(position, d_model): what the sub-layer itself computed"""
    added: Array
    """(position, d_model): x + out; out alone in a model without residual connections"""
    normed: Array
    """(position, d_model): norm of `added` (post-norm) or of `before` (else); where there is none, `before` itself,
    which is then what the sub-layer reads"""
    after: Array
    """(position, d_model): the residual stream that goes on"""
    hidden: Array | None
    """(position, d_ff): what W_2 is applied to in a feed-forward; None elsewhere"""
    placement: Literal["post", "pre", "sandwich", "res-post", "parallel"]
    """whether the norm follows the sum, as in the paper, or precedes the sub-layer; sandwich: another one follows the
    sub-layer; res-post: only that one, inside the residual connection (Liu et al. 2022, Swin Transformer V2; the
    "reordered norm" of OLMo 2); parallel: all sub-layers of the layer read its input"""
    norm: Norm | None
    """the norm that made `normed`; None: there is none"""
    z: Array | None = None
    """(position, d_ff): what the activation of a feed-forward reads; None where it was not recorded"""
    gate: Array | None = None
    """(position, d_ff): activation of a gated feed-forward's gate, which multiplies `up`; None: it has no gate"""
    up: Array | None = None
    """(position, d_ff): what the gate is multiplied with, x W_1"""
    result: Array | None = None
    """(position, d_model): what the sub-layer computed, where `out` is a norm of it (sandwich, res-post), or a multiple
    """
    result_norm: Norm | None = None
    """the norm that made `out` of it"""
    multiplier: float = 1.0
    """by which the sub-layer's result, or its norm, is multiplied before the sum; Granite's residual multiplier"""
    layer_input: Array | None = None
    """(position, d_model): what the norm of a parallel sub-layer reads; None: `before`"""
    b_2: Array | None = None
    """(d_model,): the bias of a feed-forward's last matrix, which is part of what it computed; None: there is none, or
    it could not be read"""
    adds: bool = True
    """False in a model without residual connections"""

    @property
    def norm_first(self) -> bool:
        """True if the sub-layer reads the norm of the residual stream, and the stream itself goes on without norm."""
        return self.placement != "post"

    @property
    def norm_input(self) -> Array:
        """(position, d_model): what `norm` is applied to."""
        if self.layer_input is not None:
            return self.layer_input
        return self.before if self.norm_first else self.added


@dataclass(frozen=True)
class Stream:
    """One stack of layers with what it read: the encoder's, or the decoder's."""

    name: StackName
    label: str
    """what its text is called on screen"""
    tokens: Tokens
    """what each row reads"""
    predicts: Tokens | None
    """what each row should predict; None where it predicts nothing"""
    embedded: Embedded
    sublayers: Sequence[SubLayer]
    """in the order in which they ran; of a long text each is computed again when it is asked for"""
    final: Array
    """(position, d_model): what the stack hands on, after its last norm"""
    last_norm: Norm | None = None
    """the norm after the last layer, which made `final`; None: there is none, or it could not be read"""

    @property
    def following(self) -> Tokens | None:
        """What each row predicts where that is the token after its own; an encoder's row is about its own token."""
        return self.predicts if self.name == "decoder" else None


@dataclass(frozen=True)
class Candidate:
    """A token that the model considered at one position."""

    token: str
    id: int
    probability: float
    """of the whole vocabulary"""


@dataclass(frozen=True)
class Trace:
    """One teacher-forced run with everything inside.

    Row t of the decoder reads target token t (the start token at t = 0) and predicts the next one.
    """

    checkpoint: str
    checkpoint_hash: str
    """SHA-256 of the weights"""
    device: str
    interventions: tuple[Any, ...]
    """what was changed in the model for this run, in order"""
    kinds: tuple[Kind, ...]
    """the kinds of attention that the model has"""
    streams: Mapping[str, Stream]
    """by name: encoder, decoder, or both"""
    attentions: Mapping[tuple[str, int], Attention]
    """by (kind, layer); of a long text each is computed again when it is asked for, bit for bit"""
    logits: Array
    """(row, vocabulary): a row is a target position"""
    candidates: Sequence[tuple[Candidate, ...]]
    """for each row the most probable next tokens, best first; of a long text they are found when they are asked for"""
    notes: tuple[str, ...] = ()
    """what could not be read of this model, in sentences for the screen"""
    exact: Mapping[str, float] = field(default_factory=dict)
    """by kind and layer, of a Hugging Face model: the largest difference of our attention from the model's own"""
    weights: Mapping[tuple[str, int], Array] = field(default_factory=dict)
    """by (kind, layer), (heads, query, key): the weights of attentions of which nothing else could be read"""
    languages: tuple[str, str] | None = None
    """of a translator of many languages: source and target, by the codes of its tokenizer"""

    def __post_init__(self) -> None:
        rows = self._predicting
        _check_shapes(self, {"logits": (len(rows.tokens), self.logits.shape[-1])}, f"rows {rows.tokens.labels}")
        for stream in self.streams.values():
            shape = (len(stream.tokens), stream.final.shape[-1])
            _check_shapes(stream, {"final": shape}, f"{stream.name} tokens {stream.tokens.labels}")
        if not len(self.next_tokens) == len(self.candidates) == len(rows.tokens):
            raise ValueError(f"{len(self.next_tokens)} next tokens {self.next_tokens} for {rows.tokens.labels}")

    def __repr__(self) -> str:
        """On one line: the numbers are in named_arrays()."""
        texts = " → ".join(
            f"{stream.tokens.text[:60]!r}, {len(stream.tokens)} tokens" for stream in self.streams.values()
        )
        kinds = ", ".join(f"{kind.name}: {len(kind.layers)} × {kind.heads} heads" for kind in self.kinds)
        changes = f"; changed: {len(self.interventions)}" if self.interventions else ""
        return f"<Trace of {self.checkpoint}: {texts}; {kinds}{changes}>"

    def _repr_html_(self) -> str:
        """In a notebook: the weights of every head, dark = 1, below the same line.

        Of a long text, whose pictures would be large and whose layers may not be computed yet, the line alone.
        """
        line = f"<code>{escape(repr(self))}</code>"
        if max(len(stream.tokens) for stream in self.streams.values()) > MOST_DRAWN:
            return line
        figures = [line]
        for kind in self.kinds:
            layers = [self.weights_and_mask(kind.name, layer)[0] for layer in kind.layers]
            image = _png(np.concatenate([_beside(weights) for weights in layers]))
            caption = f"{escape(kind.title)}: layers from top to bottom, heads from left to right"
            style = "width: 100%; max-width: 960px; image-rendering: pixelated"
            picture = f'<img alt="{caption}" style="{style}" src="data:image/png;base64,{image}">'
            figures.append(f'<figure style="margin: 8px 0">{picture}<figcaption>{caption}</figcaption></figure>')
        return "".join(figures)

    def save(self, path: str | Path) -> None:
        """Write everything to one .npz file, which `load` reads.

        `numpy.load` reads it, too: arrays have names such as attentions.cross.3.pattern, and the entry `trace` is the
        rest as JSON.
        """
        arrays: dict[str, Array] = {}
        said = json.dumps(_pack(self, "", arrays)).encode()
        with open(path, "wb") as file:
            np.savez_compressed(file, trace=np.frombuffer(said, np.uint8), **arrays)

    @classmethod
    def load(cls, path: str | Path) -> "Trace":
        """Read what `save` wrote.

        Raises:
            ValueError: the file is not a trace, or is damaged; the sentence names it.
            OSError: it cannot be read.
        """
        try:
            with open(path, "rb") as file:
                if not is_zipfile(file):
                    raise BadZipFile(sentence("it is no .npz"))
            with np.load(path, allow_pickle=False) as stored:
                size = sum(info.file_size for info in stored.zip.infolist())
                if size > MOST_BYTES:
                    raise Refusal("its arrays have {size:,} bytes, more than {most:,}", size=size, most=MOST_BYTES)
                arrays = dict(stored)  # each is read once, however often it is named
            trace = _unpack(json.loads(bytes(arrays["trace"])), arrays)
        except _DAMAGE as error:
            raise Refusal(
                "{path} is not the file of a trace, or it is damaged: {error}", path=str(path), error=sentence_of(error)
            ) from error
        if not isinstance(trace, cls):
            raise Refusal("{path} holds no trace", path=str(path))
        return trace

    def named_arrays(self) -> dict[str, Array]:
        """Every array of the run by the name that it has in a file."""
        arrays: dict[str, Array] = {}
        _pack(self, "", arrays)
        return arrays

    def kind(self, name: str) -> Kind:
        """The kind of attention called `name`.

        Raises:
            ValueError: the model has no such kind; the sentence lists those that it has.
        """
        for kind in self.kinds:
            if kind.name == name:
                return kind
        raise ValueError(f"no kind of attention {name!r}; there are {', '.join(kind.name for kind in self.kinds)}")

    def attention(self, kind: str, layer: int) -> Attention:
        """The attention of `kind` (encoder_self, decoder_self, cross) in `layer`.

        Raises:
            ValueError: the model has no such attention; the sentence lists those that it has.
        """
        if (kind, layer) not in self.attentions:
            found = ", ".join(f"{kind} {layer}" for kind, layer in self.attentions)
            raise ValueError(f"no attention {kind!r} in layer {layer!r}; there are {found}")
        return self.attentions[kind, layer]

    def array(self, path: str) -> Array:
        """The array of an attention by its hook path, such as decoder.layers.1.cross_attn.pattern.

        Besides what hooks read there are the other fields of `Attention`, such as decoder.layers.1.cross_attn.w_q.

        Raises:
            ValueError: the run has no such array.
        """
        for kind in self.kinds:
            for layer in kind.layers:
                name = path.removeprefix(f"{kind.path(layer)}.")
                if name == "pattern" and (kind.name, layer) in self.weights:
                    return self.weights[kind.name, layer]
                if name != path:
                    return self.attention(kind.name, layer).array(name)
        raise ValueError(f"no array {path!r} in this run")

    def weights_and_mask(self, kind: str, layer: int) -> tuple[Array, Array]:
        """Attention weights and mask, (heads, query, key) each; in a long text, no layer is computed again for them."""
        if isinstance(self.attentions, MappingOnDemand) and (kind, layer) in self.attentions.known:
            return self.attentions.known[kind, layer]
        attention = self.attention(kind, layer)
        return attention.pattern, attention.mask

    @property
    def sublayers(self) -> Sequence[SubLayer]:
        """Of all streams, in the order in which they ran."""
        return joined([stream.sublayers for stream in self.streams.values()])

    @property
    def source(self) -> str:
        """The text that was given: the encoder's, or in a model without encoder the one that was continued."""
        tokens = next(iter(self.streams.values())).tokens
        if tokens.prompt_length is None:
            return tokens.text
        end = max((span[1] for span in tokens.spans[: tokens.prompt_length] if span), default=0)
        return tokens.text[:end]

    @property
    def prompt(self) -> Prompt:
        """What was given, for another run: the turns of a chat; else `source`."""
        return next(iter(self.streams.values())).tokens.turns or self.source

    @property
    def translation(self) -> str:
        """The predicted text, generated by the model or typed."""
        return self._predicting.predicts.text

    @property
    def written(self) -> str:
        """The same without what it begins with: a translation, or what follows the text that was given."""
        given = self._predicting.tokens.prompt_length
        return self.translation if given is None else self.translation[len(self.source) :]

    @property
    def first_written(self) -> int:
        """The row that predicts the first token of `written`: the last one of the prompt; 0 in a translation."""
        return (self._predicting.tokens.prompt_length or 1) - 1

    @property
    def src_tokens(self) -> tuple[str, ...]:
        """Source pieces, the end token last; empty in a model without encoder."""
        return self.streams["encoder"].tokens.labels if "encoder" in self.streams else ()

    @property
    def src_ids(self) -> tuple[int, ...]:
        return self.streams["encoder"].tokens.ids if "encoder" in self.streams else ()

    @property
    def tgt_tokens(self) -> tuple[str, ...]:
        """What each decoder row reads: the start token, then the target but for its last token."""
        return self.streams["decoder"].tokens.labels if "decoder" in self.streams else ()

    @property
    def tgt_ids(self) -> tuple[int, ...]:
        return self.streams["decoder"].tokens.ids if "decoder" in self.streams else ()

    @property
    def row_tokens(self) -> tuple[str, ...]:
        """What each row of the logits reads."""
        return self._predicting.tokens.labels

    @property
    def next_tokens(self) -> tuple[str, ...]:
        """The token that each row of the logits should predict: in the decoder, the one that follows."""
        return self._predicting.predicts.labels

    @property
    def next_ids(self) -> tuple[int, ...]:
        return self._predicting.predicts.ids

    @property
    def src_embedded(self) -> Embedded | None:
        return self.streams["encoder"].embedded if "encoder" in self.streams else None

    @property
    def tgt_embedded(self) -> Embedded | None:
        return self.streams["decoder"].embedded if "decoder" in self.streams else None

    @property
    def memory(self) -> Array | None:
        """(source position, d_model): the encoder's output; None in a model without encoder."""
        return self.streams["encoder"].final if "encoder" in self.streams else None

    @property
    def probabilities(self) -> Array:
        """(row, vocabulary): softmax of the logits, in double precision."""
        return probabilities(self.logits)

    @cached_property
    def target_probabilities(self) -> Array:
        """(row,): p(next token | source, target up to here), in double precision."""
        return self.probabilities[np.arange(len(self.next_ids)), list(self.next_ids)]

    @cached_property
    def target_log_probabilities(self) -> Array:
        """(row,): the same as natural logarithms."""
        return log_probabilities(self.logits)[np.arange(len(self.next_ids)), list(self.next_ids)]

    @property
    def log_probability(self) -> float:
        """log p(target | source) in nats, the sum over its tokens."""
        return float(self.target_log_probabilities.sum())

    @property
    def _predicting(self) -> Stream:
        """The stream whose rows predict tokens: the last one."""
        return list(self.streams.values())[-1]


def relative_error(computed: Array, shown: Array) -> float:
    """Largest absolute difference, divided by the largest number shown where that is above 1.

    Single precision keeps seven digits, so rounding grows with the numbers.
    """
    return float(np.abs(computed - shown).max() / max(1.0, np.abs(shown).max()))


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


def _pack(value: Any, name: str, arrays: dict[str, Array]) -> Any:
    """`value` for JSON; its arrays go to `arrays`, by names that begin with `name`."""

    def pack(part: Any, key: Any) -> Any:
        words = map(str, key) if isinstance(key, tuple) else [str(key)]
        return _pack(part, ".".join([name, *words] if name else words), arrays)

    if isinstance(value, np.ndarray):
        arrays[name] = value
        return {"array": name}
    if is_dataclass(value):
        parts = {each.name: pack(getattr(value, each.name), each.name) for each in fields(value)}
        return {"type": type(value).__name__, "fields": parts}
    if isinstance(value, Mapping):
        return {"mapping": [[pack(key, "key"), pack(part, key)] for key, part in value.items()]}
    if isinstance(value, list | tuple | SequenceOnDemand):
        return [pack(part, number) for number, part in enumerate(value)]
    return value.item() if isinstance(value, np.generic) else value


def _unpack(packed: Any, arrays: Mapping[str, Array]) -> Any:
    if isinstance(packed, list):
        return tuple(_unpack(part, arrays) for part in packed)
    if not isinstance(packed, dict):
        return packed
    if "array" in packed:
        return arrays[packed["array"]]
    if "mapping" in packed:
        return {_unpack(key, arrays): _unpack(part, arrays) for key, part in packed["mapping"]}
    parts = {name: _unpack(part, arrays) for name, part in packed["fields"].items()}
    return _type_named(packed["type"])(**parts)


def _type_named(name: str) -> type:
    """A dataclass of this module, or an intervention."""
    if (found := globals().get(name)) is None:
        from model import interventions  # not above: they need PyTorch

        found = getattr(interventions, name, None)
    if not (isinstance(found, type) and is_dataclass(found)):
        raise Refusal("unknown type {name!r}", name=name)
    return found


def _beside(weights: Array) -> Array:
    """(row, column) in uint8: the weights of a layer's heads (head, query, key) beside each other, 255 = 0."""
    grey = 255 - np.rint(255 * np.clip(np.nan_to_num(weights), 0, 1)).astype(np.uint8)
    return np.concatenate([np.pad(head, ((0, 1), (0, 1)), constant_values=FRAME) for head in grey], axis=1)


def _png(grey: Array) -> str:
    """A picture as PNG in base64; `grey` is (row, column) in uint8."""
    from PIL import Image  # not above: only a notebook needs it

    file = BytesIO()
    Image.fromarray(grey).save(file, "png")
    return base64.b64encode(file.getvalue()).decode()
