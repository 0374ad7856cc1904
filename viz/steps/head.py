"""One attention head of a run as plain matrices, for the step-by-step figures and their arithmetic."""

import math
from dataclasses import dataclass
from typing import Any

from viz import tokens
from viz.canvas.matrices import Array, Axis

PROJECTIONS = ("Q", "K", "V")
AFTER_PROJECTION = {"qk_norm": "normalise", "rotary": "rotate", "query_scale": "multiply by a factor of the position"}
"""what a model may do to queries and keys, in this order or with the first two the other way round"""


@dataclass(frozen=True)
class Head:
    """What one head of one attention computed; every array is a slice of the run's tensors."""

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
    linear: dict[str, Array]
    """by Q, K, V: (position, width) = input W + b"""
    projected: dict[str, Array]
    """by Q, K, V: (position, width); `linear`, after what the model then does to queries and keys"""
    then: str
    """what it does to them: "", "normalise", "rotate", "normalise, rotate" (RoPE) and so on"""
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

    def dimensions(self, name: str = "V") -> Axis:
        """The columns of Q, K or V; those of z are V's."""
        return Axis("dimension", "dimensions of the head", self.projected[name].shape[-1])

    @property
    def model(self) -> Axis:
        return Axis("model", "dimensions of the model", self.d_model)

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
        return ", ".join(["cap"] * (self.softcap is not None) + ["add bias"] * self.adds_bias)

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
    learned, labels = attention.projections, tokens.labels
    inputs = (attention.query_input, attention.key_input, attention.key_input)
    return Head(
        index=index,
        n_heads=attention.n_heads,
        crosses=attention.crosses,
        queries=Axis(
            "query", "queries", len(attention.query_tokens), tuple(labels(attention.query_tokens)), tuple(row_notes)
        ),
        keys=Axis("key", "keys", len(attention.key_tokens), tuple(labels(attention.key_tokens))),
        inputs=dict(zip(PROJECTIONS, inputs, strict=True)),
        weights={name: getattr(learned, f"w_{name.lower()}")[index] for name in PROJECTIONS},
        biases={name: getattr(learned, f"b_{name.lower()}")[index] for name in PROJECTIONS},
        learns_biases=learned.biases,
        linear={name: _linear(attention, name.lower())[index] for name in PROJECTIONS},
        then=", ".join(AFTER_PROJECTION[part] for part in _after_projection(attention)),
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


def _linear(attention: Any, name: str) -> Array:
    """(heads, position, width): what the learned matrix of q, k or v gives, before any norm and rotation."""
    first, *_ = (*_after_projection(attention), "")
    if name == "v" or not first or (first == "query_scale" and name == "k"):
        return getattr(attention, name)
    if first == "query_scale":
        return attention.q / attention.query_scale[:, None]
    return getattr(getattr(attention, first), name)


def _after_projection(attention: Any) -> list[str]:
    """Keys of AFTER_PROJECTION: what this model does to queries and keys, in its order."""
    parts = [part for part in AFTER_PROJECTION if _has(attention, part)]
    if _has(attention, "qk_norm") and getattr(attention.qk_norm, "after_rotation", False):
        parts.sort(key=lambda part: part != "rotary")
    return parts
