"""The residual stream of a stack: what each sub-layer adds to a token's vector, and what the layer norm does to it.

Each sub-layer computes LayerNorm(x + Sublayer(x)) (paper, section 3.1). Computed from the Trace in double precision.
"""

from dataclasses import dataclass

import numpy as np

from model.analysis.distributions import ratio
from model.checkpoints.checkpoint import Checkpoint
from model.trace import SUBLAYER_TITLES, Array, SubLayer, Trace

STACKS = ("encoder", "decoder")
INPUT = "input"
"""name of the step before the first sub-layer: embedding + positional encoding"""


@dataclass(frozen=True)
class StreamMeasures:
    """Lengths and cosines of every token at every step of a stack: the input, then after each sub-layer."""

    steps: tuple[str, ...]
    """"input", "0 self-attention", ...: layer and sub-layer"""
    norm: Array
    """(position, step): ||x||, the Euclidean length of the residual stream after the step"""
    out: Array
    """(position, step): ||Sublayer(x)||; NaN at the input, as are `added` and `share`"""
    added: Array
    """(position, step): ||x + Sublayer(x)||, before any norm"""
    share: Array
    """(position, step): ||Sublayer(x)|| / (||x|| + ||Sublayer(x)||), 0 to 1; 0.5 = equally long"""
    to_start: Array
    """(position, step): cosine with the token's own input, -1 to 1"""
    to_previous: Array
    """(position, step): cosine with the previous step, -1 to 1; NaN at the input"""


@dataclass(frozen=True)
class NormSteps:
    """The norm of one vector: gamma (x - mean) / sqrt(variance + eps) + beta (Ba et al. 2016), or RMSNorm, which
    subtracts no mean and adds no beta (Zhang & Sennrich 2019)."""

    kind: str
    """LayerNorm, RMSNorm or BatchNorm"""

    gamma: Array
    """(d_model,): learned factor of each dimension"""
    beta: Array | None
    """(d_model,): learned offset of each dimension; None: there is none"""
    mean: Array
    """(d_model,): of the vector's components, the same for each; 0 with RMSNorm; in BatchNorm each dimension's own"""
    std: Array
    """(d_model,): sqrt(variance + eps), the divisor; the variance divides by d_model, not d_model - 1; with RMSNorm
    sqrt(mean square + eps)"""
    normed: Array
    """(d_model,)"""


def step_name(sublayer: SubLayer) -> str:
    """ "3 cross-attention": layer, as the code numbers it, and name."""
    return f"{sublayer.layer} {SUBLAYER_TITLES.get(sublayer.name, sublayer.name)}"


def residual_stream(trace: Trace, stack: str) -> Array:
    """(step, position, d_model): the stack's input, then the residual stream after each sub-layer."""
    stream = trace.streams[stack]
    return np.stack([stream.embedded.stream, *(sublayer.after for sublayer in stream.sublayers)])


def measure_stream(trace: Trace, stack: str) -> StreamMeasures:
    """Lengths, shares and cosines of all tokens of the "encoder" or "decoder"."""
    sublayers, x = trace.streams[stack].sublayers, residual_stream(trace, stack).astype(np.float64)
    before, out, added = (
        np.stack([lengths(getattr(sublayer, name)) for sublayer in sublayers]) for name in ("before", "out", "added")
    )
    return StreamMeasures(
        steps=(INPUT, *map(step_name, sublayers)),
        norm=lengths(x).T,
        out=_from_first(out),
        added=_from_first(added),
        share=_from_first(ratio(out, before + out)),
        to_start=rowwise_cosine(x, x[:1]).T,
        to_previous=_from_first(rowwise_cosine(x[1:], x[:-1])),
    )


def lengths(vectors: Array) -> Array:
    """(..., width) -> (...): Euclidean length of each vector, in double precision."""
    return np.linalg.norm(vectors.astype(np.float64), axis=-1)


def cosines(vectors: Array) -> Array:
    """(position, d_model) -> (position, position): cosine of each pair of vectors, -1 to 1."""
    unit = vectors.astype(np.float64)
    unit = ratio(unit, np.linalg.norm(unit, axis=-1, keepdims=True))
    return (unit @ unit.T).clip(-1, 1)


def mean_cosine(vectors: Array) -> float:
    """Mean cosine over all pairs of different positions; NaN for a single one."""
    n, similarities = len(vectors), cosines(vectors)
    return float((similarities.sum() - np.trace(similarities)) / (n * (n - 1))) if n > 1 else float("nan")


def mean_cosines(trace: Trace, stack: str) -> Array:
    """(step,): `mean_cosine` of the tokens of a stack at its input and after each sub-layer."""
    return np.array([mean_cosine(x) for x in residual_stream(trace, stack)])


def layer_norm(sublayer: SubLayer, position: int) -> NormSteps | None:
    """The norm of a sub-layer at one token, step by step from the run's input to it.

    The input is x + Sublayer(x) with post-norm, as in the paper, x with pre-norm, and Sublayer(x) where only what the
    sub-layer computed is normalised. None: the sub-layer has no norm.
    """
    norm, x = sublayer.norm, sublayer.norm_input
    if sublayer.placement == "res-post":
        norm, x = sublayer.result_norm, sublayer.result
    if norm is None:
        return None
    x = x[position].astype(np.float64)
    mean, std = (np.broadcast_to(each, x.shape) for each in (norm.subtracts(x), norm.divides_by(x)))
    return NormSteps(norm.kind, norm.gamma, norm.beta, mean, std, norm(x))


@dataclass(frozen=True)
class Neurons:
    """A feed-forward at one token as a sum: out = sum_i h_i w_i + b_2, with w_i row i of W_2 (equation 2).

    Each w_i is a "value" that neuron i writes with weight h_i (Geva et al. 2021, arXiv:2012.14913).
    """

    hidden: Array
    """(d_ff,): h = max(0, x W_1 + b_1), from the run"""
    written: Array
    """(d_ff,): ||h_i w_i||, by which neurons are ranked, as in Geva et al. 2022 (arXiv:2203.14680)"""
    top: Array
    """(k,): indices of the neurons with the largest ||h_i w_i||, largest first; none with 0"""
    contributions: Array
    """(k, d_model): h_i w_i of the top neurons"""
    logits: Array
    """(k, vocabulary): output matrix times h_i w_i, times the factor of the logits where a model has one; without any
    norm, all later sub-layers, and the layers that a model may have before its output matrix"""
    error: float
    """largest difference between the sum of all d_ff contributions + b_2 and the run's output"""


def neurons(opened: Checkpoint, sublayer: SubLayer, position: int, most: int = 10) -> Neurons:
    """What the neurons of a feed-forward write at one token, and which tokens' logits that raises; `top` lists `most`
    neurons.

    Raises:
        ValueError: the sub-layer is not a feed-forward.
    """
    if sublayer.hidden is None:
        raise ValueError(f"only a feed_forward has hidden neurons, not {step_name(sublayer)} of the {sublayer.stack}")
    rows, bias = opened.second_matrix(sublayer.stack, sublayer.layer)
    rows = rows.astype(np.float64)
    hidden, result = sublayer.hidden[position], sublayer.out if sublayer.result is None else sublayer.result
    written = np.abs(hidden) * np.linalg.norm(rows, axis=-1)
    order = np.argsort(-written, kind="stable")[:most]
    top = order[written[order] > 0]
    contributions = hidden[top, None] * rows[top]
    difference = hidden.astype(np.float64) @ rows + bias - result[position]
    factor = opened.logits_head.scale * sublayer.multiplier
    logits = factor * contributions @ opened.output_matrix().astype(np.float64).T
    return Neurons(hidden, written, top, contributions, logits, float(np.abs(difference).max()))


def rowwise_cosine(left: Array, right: Array) -> Array:
    """(..., width) twice -> (...): cosine of each two vectors; 0 for a vector of zeros."""
    return ratio((left * right).sum(axis=-1), lengths(left) * lengths(right)).clip(-1, 1)


def _from_first(measures: Array) -> Array:
    """(sub-layer, position) -> (position, step), NaN at the input."""
    return np.vstack([np.full(measures.shape[1:], np.nan), measures]).T
