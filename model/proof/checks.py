"""Checks of one Trace against the running model that are cheap enough for every page: the proof strip."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from model.analysis.heads.softmax import softmax
from model.cancel import check_cancelled
from model.checkpoints.checkpoint import Checkpoint
from model.hooks import Edit
from model.interventions import Reading
from model.interventions.base import bind
from model.language import later
from model.network.network import EMBEDDINGS
from model.trace import CHAIN_TOLERANCE, Array, Attention, Stream, SubLayer, Trace, relative_error

WATCHING, ROWS, CHAIN = later("Watching changes nothing"), later("Rows sum to 1"), later("The chain closes")
"""titles of the three checks, and of claims 2, 5 and 3"""
ROW_TOLERANCE = 1e-6

Changes = Sequence[Mapping[str, Edit | Reading]]


@dataclass(frozen=True)
class Check:
    """One claim about a Trace, and the run's error."""

    title: str
    explanation: str
    error: float
    """largest difference; relative to the largest number of its matrix where that is above 1"""
    tolerance: float
    """largest error allowed"""

    @property
    def passed(self) -> bool:
        return self.error <= self.tolerance


@dataclass(frozen=True)
class Link:
    """One step of the run: what follows from the step before it, and what is shown."""

    place: str
    """path of the attention or sub-layer, the stack, or logits"""
    step: str
    """what the step computes, such as q"""
    computed: Array
    """in double precision, from what is shown of the step before"""
    shown: Array

    @property
    def error(self) -> float:
        """Largest difference; relative to the largest number shown where that is above 1."""
        return relative_error(self.computed, self.shown)


def prove(opened: Checkpoint, trace: Trace) -> tuple[Check, ...]:
    """The three checks of the proof strip: claims 2, 3 and 5."""
    check_cancelled()
    return (hooks_change_nothing(opened, trace), chain_closes(opened, trace), rows_sum_to_one(trace))


@torch.inference_mode()
def hooks_change_nothing(opened: Checkpoint, trace: Trace) -> Check:
    """Claim 2: the logits of a run without recording equal the Trace's, bit for bit."""
    shown = trace.logits if trace.logits.size else list(trace.streams.values())[-1].final
    return Check(
        title=WATCHING,
        explanation=later("The model was run again with no recording: its logits equal those shown, bit for bit.")
        if trace.logits.size
        else later("The model was run again with no recording: its last vectors equal those shown, bit for bit."),
        error=float(np.abs(opened.unrecorded_logits(trace) - shown).max()),
        tolerance=0.0,
    )


def rows_sum_to_one(trace: Trace) -> Check:
    """Claim 5: each row of attention weights sums to 1 over the keys it may see, and is 0 on the others."""
    errors = [0.0]
    for attention in trace.attentions.values():
        visible = attention.mask.any(axis=-1)
        excess = attention.pattern.sum(axis=-1) - visible
        # A sink, which is no key, takes a share of each row.
        errors.append(float((np.abs(excess) if attention.sink is None else excess).max()))
        if attention.pattern[~attention.mask].any():
            errors.append(math.inf)
    sinks = any(attention.sink is not None for attention in trace.attentions.values())
    return Check(
        title=ROWS,
        explanation=later(
            "In every head the weights of each query sum to at most 1, because a sink, which is not a key, takes "
            "a share, and are exactly 0 on masked keys."
        )
        if sinks
        else later("In every head the weights of each query sum to 1, and are exactly 0 on masked keys."),
        error=float(np.max(errors)),
        tolerance=ROW_TOLERANCE,
    )


@torch.inference_mode()
def chain_closes(opened: Checkpoint, trace: Trace) -> Check:
    """Claim 3: each step of the run equals the same step computed in double precision from the step before it."""
    errors = [link.error for link in chain(opened, trace)]
    return Check(
        title=CHAIN,
        explanation=later(
            "From the embeddings to the logits, each step that could be read, recomputed in double precision from "
            "the step before it. The error is the largest difference from the model's own result, relative to the "
            "largest number of its matrix where that is above 1."
        )
        if trace.notes
        else later(
            "From the embeddings to the logits, each step recomputed in double precision from the step before it. "
            "The error is the largest difference from the model's own result, relative to the largest number of its "
            "matrix where that is above 1."
        ),
        error=float(np.max(errors)),
        tolerance=CHAIN_TOLERANCE,
    )


def chain(opened: Checkpoint, trace: Trace) -> Iterator[Link]:
    """Every step of the run that could be read, in the order of computation."""
    model = opened.model
    changes = [intervention.edits(model) for intervention in trace.interventions]
    for stream in trace.streams.values():
        yield from _embedded_chain(opened, changes, stream)
    paths = {place: path for place, (path, _) in model.attentions().items()}
    left = dict.fromkeys(trace.attentions)
    for name, stream in trace.streams.items():
        x = stream.embedded.stream
        for sublayer in stream.sublayers:
            path = f"{name}.layers.{sublayer.layer}.{sublayer.name}"
            yield Link(path, "x", _changed(changes, f"{path}_residual.before", x), sublayer.before)
            # An attention with its sub-layer, so that a layer of a long text is computed once.
            kind = "cross" if sublayer.name == "cross_attn" else f"{name}_self"
            if sublayer.name != "feed_forward" and (kind, sublayer.layer) in left:
                del left[kind, sublayer.layer]
                attention = trace.attentions[kind, sublayer.layer]
                yield from _attention_chain(paths[kind, sublayer.layer], changes, attention)
            yield from _sublayer_chain(opened, changes, sublayer)
            x = sublayer.after
        if stream.sublayers:
            norm = stream.last_norm
            last = _changed(changes, "memory" if stream.predicts is None else "final", x if norm is None else norm(x))
            yield Link(name, "last norm", last, stream.final)
    for place in left:  # those of layers whose residual stream could not be read
        yield from _attention_chain(paths[place], changes, trace.attentions[place])
    if trace.logits.size and (logits := opened.head_in_double(stream.final)) is not None:
        yield Link("logits", "logits", _changed(changes, "logits", logits), trace.logits)


def attention_links(opened: Checkpoint, trace: Trace, kind: str, layer: int) -> Iterator[Link]:
    """The steps of one attention."""
    path, _ = opened.model.attentions()[kind, layer]
    changes = [intervention.edits(opened.model) for intervention in trace.interventions]
    return _attention_chain(path, changes, trace.attention(kind, layer))


def _embedded_chain(opened: Checkpoint, changes: Changes, stream: Stream) -> Iterator[Link]:
    embedding, embedded, ids = opened.model.embeddings[stream.name], stream.embedded, list(stream.tokens.ids)
    place, path = f"{stream.name} input", EMBEDDINGS[stream.name]
    if embedding.known:
        computed = embedding.tokens.weight[ids].detach().cpu().double().numpy() * embedding.scale
        yield Link(place, "embedding", _changed(changes, f"{path}.embedding", computed), embedded.embedding)
    if (rows := opened.positional_rows(stream)) is not None:
        positional = rows.astype(np.float64)
        edited = _changed(changes, f"{path}.positional", positional)
        yield Link(place, "positions", edited, embedded.positional)
    summed = embedded.embedding + embedded.positional.astype(np.float64)
    yield Link(place, "sum", _changed(changes, f"{path}.sum", summed), embedded.sum)
    if embedded.norm:
        yield Link(place, "norm", embedded.norm(embedded.sum), embedded.normed)


def _attention_chain(path: str, changes: Changes, attention: Attention) -> Iterator[Link]:
    def changed(point: str, computed: Array) -> Array:
        return _changed(changes, f"{path}.{point}", computed, {f"{path}.mask": attention.mask})

    def link(point: str, computed: Array) -> Link:
        return Link(path, point, changed(point, computed), getattr(attention, point))

    for name in "qkv" if attention.projections else ():
        *before, (computed, _) = attention.recompute(name, _multiply)
        for pair in before:
            yield Link(path, name, *pair)
        yield link(name, computed)
    yield link("scores", _multiply(attention.q, attention.k.transpose(0, 2, 1)))
    yield link("scaled", attention.scores.astype(np.float64) * attention.scale)
    taus = np.ones((attention.n_heads, 1, 1), attention.temperature.dtype)
    yield Link(path, "temperature", changed("temperature", taus)[:, 0, 0], attention.temperature)
    # In the run's own precision: a small tau would magnify the difference to double precision.
    minus_infinity = attention.scaled.dtype.type(-np.inf)
    masked = changed("masked", np.where(attention.mask, attention.pre_softmax, minus_infinity))
    masked = (masked / attention.temperature[:, None, None]).astype(np.float64)
    if attention.sink is not None:
        sink = np.broadcast_to(attention.sink[:, None, None], (*masked.shape[:2], 1))
        masked = np.concatenate([masked, sink], axis=-1)
    yield link("pattern", softmax(masked)[..., : attention.pattern.shape[-1]])
    yield link("z", _multiply(attention.pattern, attention.v))
    if attention.projections:
        ((computed, _),) = attention.recompute("out", _multiply)
        yield link("out", computed)


def _changed(changes: Changes, path: str, computed: Array, earlier: Mapping[str, Array] | None = None) -> Array:
    """`computed` after the run's interventions at this hook point.

    `earlier`: by path, what an intervention may read of the run (`model.interventions.Reading`).
    """
    edits_here = [edits[path] for edits in changes if path in edits]
    if not edits_here:
        return computed
    # In the run every activation but the positional encoding has a batch dimension.
    batched = not path.endswith(".positional")
    read = {name: torch.tensor(array)[None] for name, array in (earlier or {}).items()}
    activation = torch.tensor(computed)[None] if batched else torch.tensor(computed)
    for edit in edits_here:
        edited = bind(edit, read)(activation)
        activation = activation if edited is None else edited
    return activation[0].numpy() if batched else activation.numpy()


def _sublayer_chain(opened: Checkpoint, changes: Changes, sublayer: SubLayer) -> Iterator[Link]:
    path = f"{sublayer.stack}.layers.{sublayer.layer}.{sublayer.name}"
    added = sublayer.out.astype(np.float64) + (sublayer.before if sublayer.adds else 0)
    edited = _changed(changes, f"{path}_residual.added", added, {f"{path}.out": sublayer.out})
    yield Link(path, "residual", edited, sublayer.added)
    if sublayer.norm:
        normed = _changed(changes, f"{path}_residual.normed", sublayer.norm(sublayer.norm_input))
        yield Link(path, "norm", normed, sublayer.normed)
    result = sublayer.out if sublayer.result is None else sublayer.result
    if sublayer.result is not None:
        normed = sublayer.result_norm(result) if sublayer.result_norm else result.astype(np.float64)
        yield Link(path, "norm of the result", normed * sublayer.multiplier, sublayer.out)
    after = sublayer.added if sublayer.norm_first else sublayer.normed
    if sublayer.name == "feed_forward":
        after = _changed(changes, f"{sublayer.stack}.layers.{sublayer.layer}.end", after)
    yield Link(path, "residual", after, sublayer.after)
    if sublayer.hidden is not None:
        for step, point, computed, shown in _hidden_steps(opened, sublayer):
            yield Link(path, step, _changed(changes, f"{path}.{point}", computed), shown)
        w_2, b_2 = opened.second_matrix(sublayer.stack, sublayer.layer)
        yield Link(path, "W_2", _changed(changes, f"{path}.out", _multiply(sublayer.hidden, w_2) + b_2), result)


def _hidden_steps(opened: Checkpoint, sublayer: SubLayer) -> Iterator[tuple[str, str, Array, Array]]:
    """Name, hook point, computed and shown of what leads to what W_2 reads."""
    forward = opened.model.stacks[sublayer.stack].layers[sublayer.layer].feed_forward
    x = sublayer.normed if sublayer.norm_first else sublayer.before
    if sublayer.gate is not None:
        yield "gate", "hidden", sublayer.gate.astype(np.float64) * sublayer.up, sublayer.hidden
    if hasattr(forward, "w_gate"):
        yield "activation", "gate", forward.activation(_linear(forward.w_gate, x)).numpy(), sublayer.gate
        yield "W_1", "up", _linear(forward.w_1, x).numpy(), sublayer.up
    elif hasattr(forward, "w_1"):
        yield "activation", "hidden", forward.activation(_linear(forward.w_1, x)).numpy(), sublayer.hidden


def _linear(linear: nn.Linear, x: Array) -> Tensor:
    """x W + b in double precision."""
    product = torch.from_numpy(x.astype(np.float64)) @ linear.weight.detach().cpu().double().T
    return product if linear.bias is None else product + linear.bias.detach().cpu().double()


def _multiply(left: Array, right: Array) -> Array:
    """The product of matrices in double precision; PyTorch's, which keeps to the cores that a run may use."""
    return torch.matmul(*(torch.from_numpy(each.astype(np.float64)) for each in (left, right))).numpy()
