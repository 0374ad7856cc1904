"""Parts that most Transformers since 2017 have in place of the paper's, on the vectors of a run.

Computed from the Trace in double precision.
"""

from dataclasses import dataclass

import numpy as np
import torch

from model.analysis.stream.residual_stream import rowwise_cosine
from model.background.layer_size import LayerSize, shared_heads
from model.checkpoints.checkpoint import Checkpoint
from model.needs import Need
from model.network.feed_forward import ACTIVATIONS, FUNCTIONS
from model.trace import Array, Attention, Norm, SubLayer, Trace


def embedded_token(trace: Trace, stack: str, position: int) -> dict[str, Array]:
    """(d_model,) each: the embedding of one token, what is added for its position, and their sum."""
    return {name: vectors[position] for name, vectors in trace.streams[stack].embedded.terms.items()}


@dataclass(frozen=True)
class NormPair:
    """LayerNorm and RMSNorm of the same vector, both without gamma and beta."""

    x: Array
    """(d_model,): what the model's norm reads"""
    mean: float
    std: float
    """sqrt(variance + eps): LayerNorm's divisor"""
    rms: float
    """sqrt(mean square + eps): RMSNorm's divisor"""
    layer_norm: Array
    """(d_model,): (x - mean) / std"""
    rms_norm: Array
    """(d_model,): x / rms"""
    normed: Array
    """(d_model,): the model's own result, with its gamma and beta"""
    cosine: Array
    """(norm, position): between LayerNorm and RMSNorm at every norm of the stack's layers"""


@dataclass(frozen=True)
class NormStep:
    """The norm of one sub-layer in a run."""

    sublayer: SubLayer
    norm: Norm
    read: Array
    """(position, d_model): what the norm is applied to"""
    normed: Array
    """(position, d_model): what it gives"""


def norm_steps(trace: Trace, stack: str) -> list[NormStep]:
    """The norm of each sub-layer that has one: of the stream, or of what the sub-layer computed where that is all."""
    steps = []
    for sublayer in trace.streams[stack].sublayers:
        if sublayer.norm is not None:
            steps.append(NormStep(sublayer, sublayer.norm, sublayer.norm_input, sublayer.normed))
        elif sublayer.result_norm is not None:
            normed = sublayer.out / sublayer.multiplier
            steps.append(NormStep(sublayer, sublayer.result_norm, sublayer.result, normed))
    return steps


def compare_norms(trace: Trace, stack: str, index: int, position: int) -> NormPair:
    """Both norms of what one of `norm_steps` reads at a token, and their cosine at all others."""
    steps = norm_steps(trace, stack)
    layer_norm, rms_norm = (
        [Norm(kind, np.ones(1), None, step.norm.eps)(step.read) for step in steps] for kind in ("LayerNorm", "RMSNorm")
    )
    x, eps = steps[index].read[position].astype(np.float64), steps[index].norm.eps
    return NormPair(
        x=x,
        mean=float(x.mean()),
        std=float(np.sqrt(x.var() + eps)),
        rms=float(np.sqrt((x**2).mean() + eps)),
        layer_norm=layer_norm[index][position],
        rms_norm=rms_norm[index][position],
        normed=steps[index].normed[position],
        cosine=np.stack(list(map(rowwise_cosine, layer_norm, rms_norm))),
    )


@dataclass(frozen=True)
class Activations:
    """The hidden neurons of a feed-forward at one token: act(z), times `up` where it is gated (Shazeer 2020)."""

    z: Array
    """(d_ff,): x W_1 + b_1, or x W_gate: from the run, or computed from its x and the model's weights"""
    activated: Array
    """(d_ff,): act(z), from the run"""
    up: Array | None
    """(d_ff,): x W_1 of a gated feed-forward, from the run"""
    hidden: Array
    """(d_ff,): what W_2 is applied to, from the run; act(z) * up where there is a gate"""
    top: Array
    """(k,): neurons with the largest |hidden|, largest first; none with 0"""
    curve: Array
    """(2, point): z from its smallest to its largest value, and act(z)"""
    error: float | None
    """largest difference between act(z) and `activated`; None: the formula of act is not known"""


def activations(opened: Checkpoint, trace: Trace, stack: str, layer: int, position: int, most: int = 10) -> Activations:
    """The neurons of one layer's feed-forward at one token.

    Raises:
        LookupError: what the activation reads was not found.
    """
    sublayer = feed_forward(trace, stack, layer)
    if sublayer.z is not None:
        z = sublayer.z[position].astype(np.float64)
    elif Need.OWN_LAYERS in opened.features:
        w, b = opened.activated_matrix(stack, layer)
        x = (sublayer.normed if sublayer.placement == "pre" else sublayer.before)[position].astype(np.float64)
        z = x @ w + b
    else:
        raise LookupError(f"What the activation of layer {layer} reads was not found.")
    hidden = sublayer.hidden[position]
    activated = hidden if sublayer.gate is None else sublayer.gate[position]
    order = np.argsort(-np.abs(hidden), kind="stable")[:most]
    line, act, error = _activation_curve(opened.config.activation, z, activated)
    return Activations(
        z=z,
        activated=activated,
        up=None if sublayer.up is None else sublayer.up[position],
        hidden=hidden,
        top=order[hidden[order] != 0],
        curve=np.stack([line, act]),
        error=error,
    )


def _activation_curve(name: str, z: Array, activated: Array) -> tuple[Array, Array, float | None]:
    """Points of the activation function, and how far `activated` is from it; of an unknown one the neurons' own
    points."""
    function = (ACTIVATIONS | FUNCTIONS).get(name.removeprefix("gated ").replace("geglu", "gelu"))
    if function is None:
        order = np.argsort(z)
        return z[order], activated[order].astype(np.float64), None
    error = float(np.abs(function(torch.tensor(z)).numpy() - activated).max())
    line = np.linspace(min(z.min(), -1), max(z.max(), 1), 200)
    return line, function(torch.tensor(line)).numpy(), error


def key_distances(attention: Attention) -> Array:
    """(head, head): the largest difference between the keys that two query heads read; exactly 0 where they share."""
    return np.stack([np.abs(attention.k - k).max(axis=(1, 2)) for k in attention.k])  # a head at a time: texts are long


def cache_bytes(trace: Trace, kind: str, most: int) -> dict[str, Array]:
    """Bytes of the keys and values of one self-attention in all its layers, L n h_kv (d_k + d_v) b, for n up to `most`.

    Returns:
        n: (length,); kv_heads: (scheme,), from one for each query head to one for all, the model's own among them;
        bytes: (scheme, length); run: (2,), the n of this run, and the bytes of its own keys and values.
    """
    attentions = [trace.attention(kind, layer) for layer in trace.kind(kind).layers]
    first, size = attentions[0], LayerSize.read(attentions[0])
    kv_heads = np.array(sorted({size.kv_heads, *shared_heads(size).values()}, reverse=True))
    each = sum(a.d_k * a.k.itemsize + a.v.shape[-1] * a.v.itemsize for a in attentions)
    distinct = [np.unique(a.kv_head, return_index=True)[1] for a in attentions]
    run = sum(a.k[heads].nbytes + a.v[heads].nbytes for a, heads in zip(attentions, distinct, strict=True))
    here = len(first.key_tokens)
    n = np.unique(np.append(np.linspace(0, most, 65).astype(int), here))
    return {"n": n, "kv_heads": kv_heads, "bytes": kv_heads[:, None] * each * n, "run": np.array([here, run])}


def feed_forward(trace: Trace, stack: str, layer: int) -> SubLayer:
    """The feed-forward sub-layer of a layer."""
    found = (s for s in trace.streams[stack].sublayers if s.hidden is not None and s.layer == layer)
    if (sublayer := next(found, None)) is None:
        raise LookupError(f"The inside of the feed-forward of layer {layer} was not found.")
    return sublayer
