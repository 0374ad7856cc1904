"""A score as a sum: q . k split by what wrote the query's side and by what wrote the key's."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from model.analysis.heads.softmax import softmax
from model.analysis.written.of_stream import Parts, completed, last_parts, stages, through, total
from model.language import Refusal
from model.trace import CHAIN_TOLERANCE, Array, Attention, QKNorm, Trace, relative_error

WHOLE = "input"
"""the only part of what W_Q or W_K reads where it is not known how that follows from the stream"""


def score_parts(
    trace: Trace, kind: str, layer: int, head: int, query: int, key: int
) -> tuple[tuple[str, ...], tuple[str, ...], Array]:
    """The score of a query and a key, split by part of either side.

    Rotation is part of the split; norms, also those of queries and keys, keep the scale that they had in the run. What
    comes after q . k is not: the factor 1 / sqrt(d_k), a soft cap, and a bias such as ALiBi's.

    Returns:
        names of the query's parts and of the key's, and what each pair of them adds, (query part, key part): its sum
        is the unscaled `scores[head, query, key]`.

    Raises:
        ValueError: there is no such attention, head or position, or the matrices or the residual stream could not be
            read.
    """
    attention = trace.attention(kind, layer)
    for number, there, what in zip((head, query, key), attention.scores.shape, ("head", "query", "key"), strict=True):
        if not 0 <= number < there:
            raise ValueError(f"no {what} {number}; this attention has 0 to {there - 1}")
    q, k = (side_parts(trace, kind, layer, head, side, [row]) for side, row in (("q", query), ("k", key)))
    pairs = np.einsum("ad,bd->ab", *(np.stack([part[0] for part in parts.values()]) for parts in (q, k)))
    return tuple(q), tuple(k), pairs


def weight_with_score(attention: Attention, head: int, query: int, key: int, score: float) -> float:
    """The weight of a key if its unscaled score alone were another one; 0 of a key that the mask hides."""
    if not attention.mask[head, query, key]:
        return 0.0
    row = np.where(attention.mask[head, query], attention.pre_softmax[head, query].astype(np.float64), -np.inf)
    scaled = score * attention.scale
    row[key] = scaled if attention.softcap is None else attention.softcap * np.tanh(scaled / attention.softcap)
    row[key] += 0.0 if attention.bias is None else attention.bias[head, query, key]
    row /= attention.temperature[head]
    sink = [] if attention.sink is None else [float(attention.sink[head])]
    return float(softmax(np.append(row, sink))[key])


def side_parts(trace: Trace, kind: str, layer: int, head: int, side: str, rows: Sequence[int] | None = None) -> Parts:
    """What each part makes of a head's queries ("q") or keys ("k"), {part: (row, d_k)}, which sum to `q[head]` or
    `k[head]`; without `rows` of all positions. Raises what `score_parts` does."""
    attention = trace.attention(kind, layer)
    if attention.projections is None:
        raise Refusal("The matrices of {kind} {layer} could not be read.", kind=kind, layer=layer)
    reads = attention.query_input if side == "q" else attention.key_input
    rows = list(range(len(reads)) if rows is None else rows)
    parts = _input_parts(trace, attention, side, rows)
    if relative_error(total(parts), reads[rows]) > CHAIN_TOLERANCE:
        changed = completed(parts, reads[rows], f"{kind} {layer} input changed")
        parts = changed if trace.interventions else {WHOLE: reads[rows].astype(np.float64)}
    heads = range(attention.n_heads) if _spans_heads(attention.qk_norm, side) else [head]
    vectors = _vectors(attention, list(heads), side, rows, parts)
    ours = {name: vector[list(heads).index(head)] for name, vector in vectors.items()}
    whole = getattr(attention, side)[head, rows]
    return completed(ours, whole, f"{side} changed") if trace.interventions else ours


def _input_parts(trace: Trace, attention: Attention, side: str, rows: list[int]) -> Parts:
    """What W_Q or W_K reads, {part: (row, d_model)}."""
    kind = trace.kind(attention.kind)
    if side == "k" and kind.crosses:
        return last_parts(trace, kind.keys, rows)
    name = "cross_attn" if kind.crosses else "self_attn"
    begin: Parts = {}
    for sublayer, parts in stages(trace, kind.queries, rows):
        if sublayer is None or sublayer.layer < attention.layer:
            continue
        begin = begin or parts
        if (sublayer.layer, sublayer.name) == (attention.layer, name):
            break
    if sublayer is None:
        raise ValueError(f"no {name} in layer {attention.layer} of the {kind.queries}")
    if not sublayer.norm_first or sublayer.norm is None:
        return parts
    parts = begin if sublayer.placement == "parallel" else parts
    return through(sublayer.norm, sublayer.norm_input[rows], parts, f"{kind.queries} {attention.layer} {name} beta")


def _vectors(attention: Attention, heads: list[int], side: str, rows: list[int], parts: Parts) -> Parts:
    """{part: (head, row, d_k)}: each part times W_Q or W_K, then as the model goes on; the bias is a part."""
    learned = attention.projections
    w, b = (getattr(learned, f"{name}_{side}")[heads].astype(np.float64) for name in "wb")
    vectors = {name: part @ w for name, part in parts.items()}
    if b.any():
        vectors[f"b_{side.upper()}"] = np.broadcast_to(b[:, None], (len(heads), len(rows), w.shape[-1]))
    if latent := attention.latents and getattr(attention.latents, side):
        vectors = {name: vector / latent.divisors[rows] for name, vector in vectors.items()}
    steps = [step for step in (attention.qk_norm, attention.rotary) if step is not None]
    if attention.qk_norm is not None and attention.qk_norm.after_rotation:
        steps.reverse()
    for step in steps:
        if isinstance(step, QKNorm):
            vectors = _normalise(step, heads, side, rows, vectors)
        else:
            rotary = replace(step, cos=step.cos[rows], sin=step.sin[rows])
            vectors = {name: rotary.turn(vector) for name, vector in vectors.items()}
    if side == "q" and attention.query_scale is not None:
        vectors = {name: vector * attention.query_scale[rows, None] for name, vector in vectors.items()}
    return vectors


def _spans_heads(norm: QKNorm | None, side: str) -> bool:
    """Whether one norm spans the vectors of all heads."""
    gamma = None if norm is None else getattr(norm, f"{side}_norm").gamma
    return gamma is not None and gamma.ndim == 1 and gamma.size != getattr(norm, side).shape[-1]


def _normalise(norms: QKNorm, heads: list[int], side: str, rows: list[int], vectors: Parts) -> Parts:
    """The norm of queries or keys, with the scale that it had in the run."""
    norm, x = getattr(norms, f"{side}_norm"), getattr(norms, side)[heads][:, rows]
    if norm.gamma.ndim > 1:
        norm = replace(norm, gamma=norm.gamma[heads], beta=None if norm.beta is None else norm.beta[heads])
    if not _spans_heads(norms, side):
        return through(norm, x, vectors, f"{side} norm beta")
    # Query heads share keys: each distinct one counts once in a norm that spans them all.
    sharing = x.shape[0] * x.shape[-1] // norm.gamma.size

    def join(x: Array) -> Array:
        return x[::sharing].transpose(1, 0, 2).reshape(len(rows), -1)

    def cut(x: Array) -> Array:
        return x.reshape(len(rows), -1, vectors_width).transpose(1, 0, 2).repeat(sharing, axis=0)

    vectors_width = x.shape[-1]
    joined = through(norm, join(x), {name: join(part) for name, part in vectors.items()}, f"{side} norm beta")
    return {name: cut(part) for name, part in joined.items()}
