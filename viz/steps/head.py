"""One attention head of a run as plain matrices, for the step-by-step figures and their arithmetic."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from model.language import sentence, series
from viz import tokens
from viz.theme import KEY, QUERY, VALUE, Array

PROJECTIONS = ("Q", "K", "V")
COLOURS = dict(zip(PROJECTIONS, (QUERY, KEY, VALUE), strict=True))
UNSCALED = "q / query_scale"
"""name of the queries before a model multiplies them by a factor of the position"""
AFTER_PROJECTION = {
    "qk_norm": sentence("normalise"),
    "rotary": sentence("rotate"),
    "query_scale": sentence("multiply by a factor of the position"),
}
"""what a model may do to queries and keys, in this order or with the first two the other way round"""
DIVIDED = sentence("divide by the scale of the latent's norm")
"""what comes before all of these where W is A, a norm and B"""


@dataclass(frozen=True)
class Axis:
    """The queries or the keys."""

    labels: tuple[str, ...]
    """one per position"""
    notes: tuple[str, ...] = ()
    """what is added to each label in a tooltip; or empty"""

    @property
    def size(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Head:
    """What one head of one attention computed; every array is a slice of the run's tensors."""

    attention: Any
    """a model.trace.Attention"""
    index: int
    n_heads: int
    crosses: bool
    """whether keys and values come from the encoder while queries come from the decoder"""
    queries: Axis
    keys: Axis
    inputs: dict[str, Array]
    """by Q, K, V: (position, d_model), what each projection is applied to"""
    weights: dict[str, Array]
    """by Q, K, V: (d_model, width), which is d_k, d_k and d_v"""
    biases: dict[str, Array]
    """by Q, K, V: (width,)"""
    learns_biases: bool
    """whether the model has biases; if not, they are 0"""
    projected: dict[str, Array]
    """by Q, K, V: (position, width); `linear`, after what the model then does to queries and keys"""
    then: str
    """what it does to them: "", "normalise", "rotate", "normalise, rotate" (RoPE) and so on"""
    latent: frozenset[str]
    """those of Q, K, V that pass through a latent vector: their W is A, RMSNorm and B, with the norm's scale frozen"""
    scores: Array
    """(query, key) = Q K^T"""
    scaled: Array
    """(query, key) = scores * scale"""
    scale: float
    """1 / sqrt(d_k) in the paper; 1 in a model that does not scale"""
    divided_before: bool
    """whether the model divides its queries instead of the scores"""
    softcap: float | None
    """the model caps a scaled score s at softcap * tanh(s / softcap); None: it does not"""
    adds_bias: bool
    """whether the model adds a number to each scaled score, such as a bias by distance"""
    pre_softmax: Array
    """(query, key): what the softmax reads, before mask and temperature; `scaled` in the paper"""
    mask: Array
    """bool (query, key): True = not masked"""
    temperature: float
    pattern: Array
    """(query, key): the attention weights"""
    z: Array
    """(query, d_v) = weights V"""
    concat: Array
    """(query, heads * d_v): z of every head side by side"""
    w_o: Array
    """(heads, d_v, d_model)"""
    b_o: Array
    """(d_model,)"""
    out: Array
    """(query, d_model) = concat W_O + b_O"""

    @property
    def d_k(self) -> int:
        return self.projected["Q"].shape[-1]

    @property
    def d_v(self) -> int:
        return self.z.shape[-1]

    @property
    def d_model(self) -> int:
        return self.out.shape[-1]

    @property
    def divisor(self) -> float:
        """What every score is divided by."""
        return 1 / self.scale

    @property
    def divides_by_root(self) -> bool:
        """Whether that is the square root of d_k, as in the paper."""
        return math.isclose(self.scale, self.d_k**-0.5, rel_tol=1e-4)

    @property
    def divisor_name(self) -> str:
        """The divisor as a formula, such as √64."""
        return f"√{self.d_k}" if self.divides_by_root else f"{self.divisor:.4g}"

    @property
    def before_mask(self) -> str:
        """What the model does to scaled scores before it masks them: "", "cap", "add bias", or "cap, add bias"."""
        does = [sentence("cap")] * (self.softcap is not None) + [sentence("add bias")] * self.adds_bias
        return series(does) if does else ""

    def linear_name(self, name: str) -> str:
        """Of what the learned matrix gives for Q, K or V at the attention; of V, and in the paper, that itself."""
        return _linear_name(self.attention, name.lower())

    def made_name(self, name: str) -> str:
        """Of what the last learned matrix of Q or K gives: that of B, where they pass through a latent vector."""
        return f"latents.{name.lower()}.made" if name in self.latent else self.linear_name(name)

    def changes(self, name: str) -> str:
        """What comes after the product with W, for Q, K or V."""
        parts = [DIVIDED] if name in self.latent else []
        parts += [self.then] if self.then and name != "V" else []
        return series(parts) if parts else ""

    @property
    def linear(self) -> dict[str, Array]:
        """By Q, K, V: (position, width) = input W + b."""
        return {name: self.array(f"{self.linear_name(name)}[{self.index}]") for name in PROJECTIONS}

    def array(self, name: str) -> Array:
        """The array of that name at the attention, such as w_o or q[3], or the product of two, z[3] @ w_o[3]."""
        if "@" in name:
            one, other = (self.array(part).astype(np.float64) for part in name.split(" @ "))
            return (one @ other).astype(np.float32)
        whole, _, part = name.partition("[")
        array = (
            self.attention.q / self.attention.query_scale[:, None] if whole == UNSCALED else self.attention.array(whole)
        )
        return array[int(part[:-1])] if part else array

    def contributions(self, query: int | slice = slice(None)) -> Array:
        """(heads, query, d_model) in double precision: z of each head times its rows of W_O."""
        z = self.concat[query].reshape(-1, self.n_heads, self.d_v).astype(float)
        return z.transpose(1, 0, 2) @ self.w_o.astype(float)


@dataclass(frozen=True)
class Choice:
    """The cell whose arithmetic is shown."""

    query: int = 0
    key: int = 0
    dimension: int = 0
    """column of Q, K, V and z"""
    output: int = 0
    """column of the attention's output"""
    projection: str = "Q"
    """which projection the first step shows"""


def head_of(attention: Any, index: int, row_notes: tuple[str, ...] = ()) -> Head:
    """Head `index` of `attention` (a model.trace.Attention, or anything with its fields).

    Args:
        row_notes: additions to the hover text of each query, in the decoder what the row reads and predicts.

    Raises:
        ValueError: the attention has no such head.
    """
    if not 0 <= index < attention.n_heads:
        raise ValueError(f"there is no head {index}; heads are 0 to {attention.n_heads - 1}")
    learned, labels, after = attention.projections, tokens.labels, _after_projection(attention)
    inputs = (attention.query_input, attention.key_input, attention.key_input)
    return Head(
        attention=attention,
        index=index,
        n_heads=attention.n_heads,
        crosses=attention.crosses,
        queries=Axis(tuple(labels(attention.query_tokens)), tuple(row_notes)),
        keys=Axis(tuple(labels(attention.key_tokens))),
        inputs=dict(zip(PROJECTIONS, inputs, strict=True)),
        weights={name: getattr(learned, f"w_{name.lower()}")[index] for name in PROJECTIONS},
        biases={name: getattr(learned, f"b_{name.lower()}")[index] for name in PROJECTIONS},
        learns_biases=learned.biases,
        then=series(AFTER_PROJECTION[part] for part in after) if after else "",
        latent=frozenset(name for name in PROJECTIONS if _has_latent(attention, name.lower())),
        projected={name: getattr(attention, name.lower())[index] for name in PROJECTIONS},
        scores=attention.scores[index],
        scaled=attention.scaled[index],
        scale=attention.scale,
        divided_before=attention.scale == 1 and not attention.undivided,
        softcap=attention.softcap,
        adds_bias=attention.bias is not None,
        pre_softmax=attention.pre_softmax[index],
        mask=attention.mask[index],
        temperature=float(attention.temperature[index]),
        pattern=attention.pattern[index],
        z=attention.z[index],
        concat=attention.concat,
        w_o=learned.w_o,
        b_o=learned.b_o,
        out=attention.out,
    )


def _has(attention: Any, part: str) -> bool:
    return getattr(attention, part, None) is not None


def _has_latent(attention: Any, name: str) -> bool:
    return getattr(getattr(attention, "latents", None), name, None) is not None


def _linear_name(attention: Any, name: str) -> str:
    """Of what the learned matrix of q, k or v gives, before any norm and rotation."""
    if _has_latent(attention, name):
        return f"latents.{name}.linear"
    first, *_ = (*_after_projection(attention), "")
    if name == "v" or not first or (first == "query_scale" and name == "k"):
        return name
    return UNSCALED if first == "query_scale" else f"{first}.{name}"


def _after_projection(attention: Any) -> list[str]:
    """Keys of AFTER_PROJECTION: what this model does to queries and keys, in its order."""
    parts = [part for part in AFTER_PROJECTION if _has(attention, part)]
    if _has(attention, "qk_norm") and getattr(attention.qk_norm, "after_rotation", False):
        parts.sort(key=lambda part: part != "rotary")
    return parts
