"""The residual stream as a sum: what embedding, position, heads, feed-forwards and biases wrote into it."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from model.language import Refusal
from model.on_demand import SequenceOnDemand
from model.trace import CHAIN_TOLERANCE, Array, Attention, Embedded, Norm, SubLayer, Trace, relative_error

Parts = dict[str, Array]
"""what each part wrote, (..., position, d_model), in double precision; names as `head_part` and the words below"""
Stage = tuple[SubLayer | None, Parts]
EMBEDDING, POSITION = "embedding", "position"
_HEAD = re.compile(r"(encoder_self|decoder_self|cross) (\d+)\.(\d+)")


def written_parts(trace: Trace, stack: str) -> Sequence[Stage]:
    """The residual stream of a stack before each sub-layer as a sum over the parts that wrote it.

    A stage is computed when it is asked for, from the one before it, and only the last one is kept. A saved run needs
    the norm after its last layer. What each neuron of a feed-forward wrote,
    `model.analysis.stream.residual_stream.neurons` says: h_i w_i.

    Returns:
        (sub-layer, {part: (position, d_model)}) in the order of the run, each sum equal to `sublayer.before`; last
        (None, parts), which sum to `trace.streams[stack].final`. Where an intervention changed the stream itself, what
        it added is a part "... changed".

    Raises:
        ValueError: the residual stream could not be read in every layer.
    """
    count = len(trace.streams[stack].sublayers) + 1
    _check_readable(trace, stack)
    return SequenceOnDemand(range(count), _Replay(lambda: stages(trace, stack)))


def last_parts(trace: Trace, stack: str, rows: Sequence[int] | None = None, keys: bool = False) -> Parts:
    """What sums to the output of a stack, {part: (row, d_model)}; arguments as of `stages`."""
    *_, (_, parts) = stages(trace, stack, rows, keys)
    return parts


def head_part(kind: str, layer: int, head: int) -> str:
    """The name of what a head wrote."""
    return f"{kind} {layer}.{head}"


def head_of_part(name: str) -> tuple[str, int, int] | None:
    """Kind, layer and number of the head that wrote a part; None: no single head did."""
    match = _HEAD.fullmatch(name)
    return (match[1], int(match[2]), int(match[3])) if match else None


@dataclass
class _Replay:
    """The items of an iterator by number; it starts again for one that is past."""

    begin: Callable[[], Iterator[Stage]]
    _left: Iterator[Stage] = field(default_factory=lambda: iter(()))
    _number: int = -1
    _stage: Stage | None = None

    def __call__(self, number: int) -> Stage:
        if self._stage is None or number < self._number:
            self._left, self._number = self.begin(), -1
        while self._number < number:
            self._stage = next(self._left)
            self._number += 1
        return self._stage


def stages(trace: Trace, stack: str, rows: Sequence[int] | None = None, keys: bool = False) -> Iterator[Stage]:
    """As `written_parts`, one after another, of all positions of the stream or of some rows; raises as that does.

    With `keys`, each head's part is split by the keys that it read, (key, row, d_model), and parts of interventions are
    left out.
    """
    _check_readable(trace, stack)
    stream, take = trace.streams[stack], slice(None) if rows is None else list(rows)
    check = bool(trace.interventions) and not keys
    parts, x = _embedded_parts(stream.embedded, stack, take), stream.embedded.stream
    for sublayer in stream.sublayers:
        place = f"{stack} {sublayer.layer} {sublayer.name}"
        parts = completed(parts, sublayer.before[take], f"{place} input changed") if check else parts
        yield sublayer, parts
        parts = (parts if sublayer.adds else {}) | _sublayer_parts(trace, sublayer, take, keys, check)
        parts = completed(parts, sublayer.added[take], f"{place} sum changed") if check else parts
        if sublayer.placement == "post" and sublayer.norm is not None:
            parts = through(sublayer.norm, sublayer.added[take], parts, f"{place} beta")
        x = sublayer.after
    parts = completed(parts, x[take], f"{stack} output changed") if check else parts
    if stream.last_norm is not None:
        parts = through(stream.last_norm, x[take], parts, f"{stack} last beta")
    yield None, parts


def pull_back(trace: Trace, stack: str, directions: Array, rows: Sequence[int], keys: bool = False) -> dict[str, Array]:
    """What each part adds to the output of a stack in one direction a row, (row, d_model): {part: (row,)}; with `keys`
    as of `stages` (key, row).

    The same terms as those of `last_parts` times the directions: here the directions go back through the norms, so no
    part is normalised again and none is kept. Raises what `stages` does.
    """
    _check_readable(trace, stack)
    stream, take, d = trace.streams[stack], list(rows), directions
    check, terms = bool(trace.interventions) and not keys, {}

    def add(parts: Mapping[str, Array]) -> None:
        terms.update({name: (part * d).sum(axis=-1) for name, part in parts.items()})

    def back(norm: Norm, x: Array, beta: str) -> Array:
        add({} if norm.offset is None else {beta: norm.offset[None]})
        return freeze(norm, x[take], transposed=True)(d)

    following, name = None, f"{stack} output changed"
    if stream.last_norm is not None:
        d = back(stream.last_norm, stream.sublayers[-1].after, f"{stack} last beta")
    for sublayer in reversed(stream.sublayers):
        place = f"{stack} {sublayer.layer} {sublayer.name}"
        if check and following is not None:
            add(_difference(following, sublayer.after[take], name))
        if sublayer.placement == "post" and sublayer.norm is not None:
            d = back(sublayer.norm, sublayer.added, f"{place} beta")
        if check:
            before = sublayer.before[take].astype(np.float64) * sublayer.adds
            add(_difference(sublayer.added[take], before + sublayer.out[take], f"{place} sum changed"))
        add(_sublayer_parts(trace, sublayer, take, keys, check))
        if not sublayer.adds:
            return dict(reversed(terms.items()))
        following, name = sublayer.before[take], f"{place} input changed"
    if check and following is not None:
        add(_difference(following, stream.embedded.stream[take], name))
    add(_embedded_parts(stream.embedded, stack, take))
    return dict(reversed(terms.items()))


def shares_of_last(trace: Trace, stack: str, position: int) -> Array:
    """What each sub-layer wrote of the last vector of a token: its part along that vector, over the vector's length.

    Every norm is held at its scale in this run. What stands at right angles to the last vector counts 0. Raises what
    `stages` does.

    Returns:
        (1 + sub-layer + 1,), with the sum 1: what the first layer reads, each sub-layer, and the beta of the norm after
        the last layer.
    """
    stream = trace.streams[stack]
    last = stream.final[position].astype(np.float64)
    numbers = {(one.layer, one.name): number for number, one in enumerate(stream.sublayers, start=1)}
    shares = np.zeros(len(numbers) + 2)
    for name, share in pull_back(trace, stack, (last / (last @ last))[None], [position]).items():
        shares[_number_of(name, stack, numbers)] += share[0]
    return shares


def _number_of(part: str, stack: str, numbers: Mapping[tuple[int, str], int]) -> int:
    """The place of a part's sub-layer among them; 0 before the first, and one more than all after the last."""
    if written := re.match(r"(\w+) (\d+)[. ](\w+)", part):
        by, layer, name = written.groups()
        return numbers[int(layer), {stack: name, "cross": "cross_attn"}.get(by, "self_attn")]
    return len(numbers) + 1 if part.startswith((f"{stack} last", f"{stack} output")) else 0


def _difference(whole: Array, summed: Array, name: str) -> Parts:
    """What a change in the run added, by its name; nothing where that is no more than rounding."""
    return {name: whole - summed.astype(np.float64)} if relative_error(summed, whole) > CHAIN_TOLERANCE else {}


def through(norm: Norm, x: Array, parts: Mapping[str, Array], beta: str) -> Parts:
    """What a norm of `x`, (row, width), makes of the parts of x: its mean is each part's own, its scale frozen.

    What the norm adds whatever it reads, its beta, is a part of its own with the name `beta`.
    """
    linear = freeze(norm, x)
    normed = {name: linear(part) for name, part in parts.items()}
    return normed if norm.offset is None else normed | {beta: np.broadcast_to(norm.offset, x.shape)}


def freeze(norm: Norm, x: Array, transposed: bool = False) -> Callable[[Array], Array]:
    """The linear function that a norm is with the scale that it has at `x`, (row, width), without its beta; or its
    transpose."""
    centres, scale = norm.kind == "LayerNorm", norm.gamma / norm.divides_by(x.astype(np.float64))

    def centre(part: Array) -> Array:
        return part - part.mean(axis=-1, keepdims=True) if centres else part

    return (lambda part: centre(part * scale)) if transposed else (lambda part: centre(part) * scale)


def completed(parts: Parts, whole: Array, name: str) -> Parts:
    """The parts, and what they lack of the `whole` where that is more than rounding."""
    rest = whole - total(parts)
    return parts | {name: rest} if relative_error(total(parts), whole) > CHAIN_TOLERANCE else parts


def total(parts: Mapping[str, Array]) -> Array:
    """The sum over all parts."""
    return np.sum(list(parts.values()), axis=0)


def _check_readable(trace: Trace, stack: str) -> None:
    stream = trace.streams[stack]
    layers = [layer for kind in trace.kinds if kind.queries == stack for layer in kind.layers]
    if layers and not len(stream.sublayers):
        raise Refusal(
            "The residual stream of the {stack} could not be read in every layer of {checkpoint}.",
            stack=stack,
            checkpoint=trace.checkpoint,
        )
    after = stream.sublayers[-1].after if len(stream.sublayers) else stream.embedded.stream
    normed = after if stream.last_norm is None else stream.last_norm(after)
    if relative_error(normed, stream.final) > CHAIN_TOLERANCE:
        raise Refusal(
            "What follows the last layer of the {stack} of {checkpoint} could not be read. If this is a run from a "
            "file, it may have been saved without it: run its text again.",
            stack=stack,
            checkpoint=trace.checkpoint,
        )


def _embedded_parts(embedded: Embedded, stack: str, take: slice | list[int]) -> Parts:
    """What the first layer reads; one part, where more than a norm lies between the sum and the layer."""
    if embedded.normed is not None and embedded.norm is None:
        return {f"{EMBEDDING} and {POSITION}": embedded.normed[take].astype(np.float64)}
    shape = embedded.embedding.shape
    parts = {EMBEDDING: embedded.embedding[take].astype(np.float64)}
    if embedded.positional.any():
        parts[POSITION] = np.broadcast_to(embedded.positional.astype(np.float64), shape)[take]
    if embedded.norm is None:
        return parts
    return through(embedded.norm, embedded.sum[take], parts, f"{stack} input beta")


def _sublayer_parts(trace: Trace, sublayer: SubLayer, take: slice | list[int], keys: bool, check: bool) -> Parts:
    """What a sub-layer adds to the stream, by part."""
    place = f"{sublayer.stack} {sublayer.layer} {sublayer.name}"
    result = (sublayer.out if sublayer.result is None else sublayer.result)[take]
    if sublayer.name == "feed_forward":
        parts = {place: result.astype(np.float64)}
        if sublayer.b_2 is not None and sublayer.b_2.any():
            bias = np.broadcast_to(sublayer.b_2.astype(np.float64), result.shape)
            parts = {place: result - bias, f"{place} b_2": bias}
    else:
        kind = "cross" if sublayer.name == "cross_attn" else f"{sublayer.stack}_self"
        attention = trace.attentions.get((kind, sublayer.layer))
        if attention is None or attention.projections is None:
            parts = {place: result.astype(np.float64)}
        else:
            parts = _head_parts(attention, take, keys)
    parts = completed(parts, result, f"{place} changed") if check else parts
    if sublayer.result_norm is not None:
        parts = through(sublayer.result_norm, result, parts, f"{place} result beta")
    return {name: part * sublayer.multiplier for name, part in parts.items()} if sublayer.multiplier != 1 else parts


def _head_parts(attention: Attention, take: slice | list[int], keys: bool) -> Parts:
    learned, parts = attention.projections, {}
    for head, w_o in enumerate(learned.w_o.astype(np.float64)):
        name = head_part(attention.kind, attention.layer, head)
        z = attention.z[head, take].astype(np.float64)
        parts[name] = _by_key(attention, head, take, z, w_o) if keys else z @ w_o
    if learned.b_o.any():
        bias = np.broadcast_to(learned.b_o.astype(np.float64), attention.out[take].shape)
        parts[f"{attention.kind} {attention.layer} b_O"] = bias
    return parts


def _by_key(attention: Attention, head: int, take: slice | list[int], z: Array, w_o: Array) -> Array:
    """(key, row, d_model): weight times v W_O; NaN where an intervention made z another than a multiple of the sum."""
    weights, v = attention.pattern[head, take].astype(np.float64), attention.v[head].astype(np.float64)
    summed = weights @ v
    factor = (z * summed).sum() / max(float((summed**2).sum()), np.finfo(float).tiny)
    if relative_error(factor * summed, z) > CHAIN_TOLERANCE:
        factor = np.nan
    elif abs(factor - 1) < CHAIN_TOLERANCE:
        factor = 1.0
    return factor * weights.T[:, :, None] * (v @ w_o)[:, None]
