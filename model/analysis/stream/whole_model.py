"""Figure 1 of the paper for one run: each box of the model, its size and work, and what it does to every token.

boxes = model_boxes(opened, trace)
{box.name: box.values["out"][3] for box in boxes if box.stack == "decoder"}  # the way of target token 3
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from model.analysis.distributions import entropy
from model.analysis.stream.residual_stream import lengths, measure_stream
from model.analysis.sweep import log_probability, sweep
from model.background.layer_size import LayerSize
from model.checkpoints.checkpoint import Checkpoint
from model.hooks import has_hook_point
from model.interventions import Intervention, NormOff, PositionsOff, ResidualOff, SublayerOff
from model.needs import Need
from model.network.network import EMBEDDINGS
from model.trace import Array, Attention, Norm, Stream, SubLayer, Trace
from model.tracer import read_norm

ATTENTIONS = ("self_attn", "cross_attn")
SIDES = {"encoder": "source", "decoder": "target"}


@dataclass(frozen=True)
class Box:
    """One box of figure 1."""

    stack: str
    """encoder or decoder"""
    layer: int | None
    """None: outside the layers"""
    part: str
    """embedding, positions, norm_first (of both), self_attn, cross_attn, feed_forward, norm, norm_after (of what a
    sub-layer computed), add, add_norm, output or softmax"""
    values: Mapping[str, Array]
    """(position,) each: lengths of the vectors that each token meets there, "in" and "out" among them"""
    sublayer: str | None = None
    """name of the sub-layer that a box inside a layer belongs to"""
    matrices: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """shapes of what it multiplies or adds, (in, out), by symbol; learned unless `parameters` is 0"""
    parameters: int = 0
    shared: bool = False
    """whether its parameters are those of an earlier box"""
    multiply_adds: int = 0
    """of all tokens of the run together"""
    pattern: Array | None = None
    """(heads, query, key): attention weights; NaN is masked"""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """what else tells this box from others of its part: norm, activation, kv_heads, rotary, scale"""
    removable: bool = True
    """whether what it adds has a place of its own: positions are added apart, a residual connection is not shared"""
    beside: bool = False
    """whether its sub-layer reads what the layer reads, not what the sub-layer before it has added"""
    has_norm: bool = False
    """whether the norm of its sub-layer can be left out"""

    @property
    def name(self) -> str:
        """encoder.embedding, decoder.3.cross_attn or decoder.3.cross_attn.add_norm."""
        inside = self.sublayer if self.sublayer != self.part else None
        return ".".join(str(each) for each in (self.stack, self.layer, inside, self.part) if each is not None)

    def switches(self) -> dict[str, Intervention]:
        """How it can be switched off: "off", "residual" and "norm", as far as it can."""
        place = {"stack": self.stack, "layer": self.layer, "name": self.sublayer}
        residual = {"residual": ResidualOff(**place)} if self.removable else {}
        if self.part == "positions":
            return {"off": PositionsOff(SIDES[self.stack])} if self.removable else {}
        norm = {"norm": NormOff(**place)} if self.has_norm else {}
        if self.part == self.sublayer:
            return {"off": SublayerOff(**place), **residual, **norm}
        return {"add": residual, "add_norm": residual | norm, "norm": norm}.get(self.part, {})


def model_boxes(checkpoint: Checkpoint, trace: Trace) -> tuple[Box, ...]:
    """Every box in the order in which a token goes through them, the encoder's first."""
    boxes: list[Box] = []
    learned = checkpoint.parameters_by_block()
    for name, stream in trace.streams.items():
        boxes += _input_boxes(checkpoint, stream)
        shares = measure_stream(trace, name).share[:, 1:].T
        for sublayer, share in zip(stream.sublayers, shares, strict=True):
            own = learned.get((name, sublayer.layer))
            has_norm = Need.OWN_LAYERS in checkpoint.features and checkpoint.config.norm_function != "none"
            found = _sublayer_boxes(trace, sublayer, share, own or {}, checkpoint.config.activation, has_norm)
            if has_norm:
                found = [_with_norm(checkpoint, sublayer, box) for box in found]
            # The layers of ALBERT share their weights: those of the first are counted.
            boxes += [replace(box, shared=box.shared or own is None) for box in found]
        if norm := stream.last_norm:
            ends = {"in": lengths(stream.sublayers[-1].after), "out": lengths(stream.final)}
            boxes.append(Box(name, None, "norm", ends, **_norm(norm)))
    return (*boxes, *_output_boxes(checkpoint, trace))


def box_arrays(boxes: Sequence[Box], trace: Trace) -> dict[str, Array]:
    """Parameters, multiply-adds and every value of each box."""
    arrays = {name: np.array([getattr(box, name) for box in boxes]) for name in ("name", "parameters", "multiply_adds")}
    values = {f"{box.name} {name}": array for box in boxes for name, array in box.values.items()}
    return {**arrays, **values, "log_probability": np.array(trace.log_probability)}


def switch_off_each(checkpoint: Checkpoint, trace: Trace) -> Iterator[dict[str, float]]:
    """Run the same tokens again with one box off, or without its residual, each in turn; yields log p of the text in
    nats by box and switch, "decoder.1.cross_attn residual", NaN where not yet run."""
    switches = {
        f"{box.name} {switch}": change
        for box in model_boxes(checkpoint, trace)
        if box.part not in ("add", "add_norm", "norm")
        for switch, change in box.switches().items()
    }
    found = dict.fromkeys(switches, np.nan)
    for name, logits in zip(switches, sweep(checkpoint, trace, [(one,) for one in switches.values()]), strict=True):
        found[name] = log_probability(logits, trace.next_ids)
        yield dict(found)


def _input_boxes(checkpoint: Checkpoint, stream: Stream) -> list[Box]:
    embedded, side = stream.embedded, SIDES[stream.name]
    scale, tables = checkpoint.embedding_scale, [each.tokens.weight for each in checkpoint.model.embeddings.values()]
    own = checkpoint.embedding_matrix(side)
    embedding = lengths(embedded.embedding)
    values = {"in": embedding / scale, "out": embedding}
    boxes = [
        Box(
            stream.name,
            None,
            "embedding",
            values,
            matrices={"E": own.shape},
            parameters=own.size,
            shared=stream.name != next(iter(checkpoint.model.embeddings)) and tables[0] is tables[-1],
            facts={"scale": scale},
        )
    ]
    table = checkpoint.positional_encoding(side)
    if table is not None or not np.array_equal(embedded.embedding, embedded.sum):
        values = {"in": embedding, "added": lengths(embedded.positional), "out": lengths(embedded.sum)}
        known = {} if table is None else {"P": table.shape}
        parameters = table.size if known and checkpoint.config.positions == "learned" else 0
        removable = has_hook_point(checkpoint.model, f"{EMBEDDINGS[stream.name]}.positional")
        boxes.append(Box(stream.name, None, "positions", values, None, known, parameters, removable=removable))
    if embedded.normed is not None:
        ends = {"in": lengths(embedded.sum), "out": lengths(embedded.normed)}
        boxes.append(Box(stream.name, None, "norm_first", ends, **_norm(embedded.norm)))
    return boxes


def _sublayer_boxes(
    trace: Trace, sublayer: SubLayer, share: Array, learned: Mapping[str, int], activation: str, has_norm: bool
) -> list[Box]:
    """The sub-layer and what stands around it: "Add & norm" after it, or a norm before and a sum after it."""
    name, pre = sublayer.name, sublayer.norm_first
    before, added = lengths(sublayer.before), lengths(sublayer.added)
    update, normed = lengths(sublayer.out), lengths(sublayer.normed)
    place, beside = (sublayer.stack, sublayer.layer), sublayer.placement == "parallel"
    result = update if sublayer.result is None else lengths(sublayer.result)
    ends = {"in": normed if pre else before, "out": result, "share": share}
    inside = {"sublayer": name, "removable": sublayer.adds and not beside, "beside": beside}
    if name in ATTENTIONS:
        attention = trace.attention("cross" if name == "cross_attn" else f"{sublayer.stack}_self", sublayer.layer)
        details = _attention(attention)
        ends |= _attention_values(attention)
    else:
        details = _feed_forward(sublayer, activation)
        ends |= _feed_forward_values(sublayer)
    inner = Box(*place, name, ends, parameters=learned.get(name, 0), **details, **inside)
    sums = {"residual": before, "update": update, "added": added, "share": share, "out": lengths(sublayer.after)}
    norm = {} if sublayer.norm is None else _norm(sublayer.norm)
    if not (sublayer.adds or pre):
        return [inner, Box(*place, "norm", {"in": added, "out": normed}, **norm, **inside)]
    if not pre:
        return [inner, Box(*place, "add_norm", sums, **norm, **inside)]
    reads = {"in": lengths(sublayer.norm_input), "out": normed}
    boxes = []
    if norm or has_norm:
        boxes.append(Box(*place, "norm", reads, shared=_shares_norm(trace, sublayer), **norm, **inside))
    boxes.append(inner)
    if sublayer.result is not None:
        after = {"in": result, "out": update}
        boxes.append(Box(*place, "norm_after", after, **_norm(sublayer.result_norm), **inside))
    return [*boxes, Box(*place, "add", sums, **inside)] if sublayer.adds else boxes


def _with_norm(checkpoint: Checkpoint, sublayer: SubLayer, box: Box) -> Box:
    """The box of a sub-layer whose norm can be left out; one that is keeps what it has learned."""
    if sublayer.norm is None and box.part in ("norm", "add_norm"):
        path = f"{sublayer.stack}.layers.{sublayer.layer}.{sublayer.name}_residual.norm"
        learned = _norm(read_norm(checkpoint.model.get_submodule(path)))
        box = replace(box, **learned | {"facts": {"norm": "left out"}})
    return replace(box, has_norm=True)


def _shares_norm(trace: Trace, sublayer: SubLayer) -> bool:
    """True if the sub-layer before it in a parallel layer reads the same norm."""
    if sublayer.placement != "parallel":
        return False
    first = next(s for s in trace.streams[sublayer.stack].sublayers if s.layer == sublayer.layer)
    return first.name != sublayer.name and np.shares_memory(first.norm.gamma, sublayer.norm.gamma)


def _norm(norm: Norm | None) -> dict[str, Any]:
    """`matrices`, `parameters` and `facts` of a norm; None: something else, whose formula is not known."""
    if norm is None:
        return {"facts": {"norm": "norm and projection"}}
    learned = {"γ": norm.gamma.shape} | ({} if norm.beta is None else {"β": norm.beta.shape})
    return {"matrices": learned, "parameters": len(learned) * norm.gamma.size, "facts": {"norm": norm.kind}}


def _attention(attention: Attention) -> dict[str, Any]:
    """What is the same for all tokens: matrices, work, weights, and how its scores are made."""
    _, queries, keys = attention.pattern.shape
    size = LayerSize.read(attention)
    shapes = {
        "W_Q": (attention.query_input.shape[-1], size.heads * size.d_k),
        "W_K": (attention.key_input.shape[-1], size.kv_heads * size.d_k),
        "W_V": (attention.key_input.shape[-1], size.kv_heads * size.d_v),
        "W_O": (size.heads * size.d_v, size.d_model),
    }
    rows = {"W_Q": queries, "W_K": keys, "W_V": keys, "W_O": queries}
    norms = attention.qk_norm
    gammas = {} if norms is None else {"γ_Q": norms.q_norm.gamma.shape, "γ_K": norms.k_norm.gamma.shape}
    return {
        "matrices": {} if attention.projections is None else shapes | gammas,
        "multiply_adds": size.products(queries, keys)
        + sum(rows[name] * math.prod(shape) for name, shape in shapes.items()),
        "pattern": np.where(attention.mask, attention.pattern, np.nan),
        "facts": {
            "kv_heads": size.kv_heads,
            "normed": norms is not None,
            "rotary": attention.rotary is not None,
            "scale": attention.scale,
            "d_k": size.d_k,
            "softcap": attention.softcap,
            "bias": attention.bias is not None,
        },
    }


def _feed_forward(sublayer: SubLayer, activation: str) -> dict[str, Any]:
    """As `_attention`; nothing is known of one that could not be read, such as a mixture of experts."""
    if sublayer.hidden is None:
        return {"facts": {"d_ff": 0}}
    n, d_ff = sublayer.hidden.shape
    d_model = sublayer.out.shape[-1]
    first = ("W_1",) if sublayer.gate is None else ("W_gate", "W_1")
    shapes = dict.fromkeys(first, (d_model, d_ff)) | {"W_2": (d_ff, d_model)}
    return {
        "matrices": shapes,
        "multiply_adds": n * sum(map(math.prod, shapes.values())),
        "facts": {"d_ff": d_ff, "gated": sublayer.gate is not None, "activation": activation},
    }


def _feed_forward_values(sublayer: SubLayer) -> dict[str, Array]:
    if sublayer.hidden is None:
        return {}
    values = {"hidden": lengths(sublayer.hidden), "active": (sublayer.hidden > 0).sum(axis=-1).astype(float)}
    return values if sublayer.gate is None else values | {"gate": lengths(sublayer.gate), "up": lengths(sublayer.up)}


def _attention_values(attention: Attention) -> dict[str, Array]:
    """Of each query: lengths of its joined q and z, mean length of the keys and values, its largest weight."""
    heads = attention.pattern.transpose(1, 0, 2)
    queries, n_heads, n_keys = heads.shape
    largest = heads.reshape(queries, -1).argmax(axis=-1)
    # Of several query heads that share keys and values, the first one.
    _, first = np.unique(attention.kv_head or range(n_heads), return_index=True)
    k, v = (np.linalg.norm(each[first].astype(np.float64), axis=(0, 2)).mean() for each in (attention.k, attention.v))
    return {
        "q": np.linalg.norm(attention.q.astype(np.float64), axis=(0, 2)),
        "k": np.full(queries, k),
        "v": np.full(queries, v),
        "head": (largest // n_keys).astype(float),
        "key": (largest % n_keys).astype(float),
        "weight": heads.reshape(queries, -1).max(axis=-1),
        "entropy": entropy(heads).mean(axis=-1),
        "z": lengths(attention.concat),
    }


def _output_boxes(checkpoint: Checkpoint, trace: Trace) -> list[Box]:
    """The output matrix and the softmax, of the stream whose rows predict."""
    *_, stream = trace.streams.values()
    rows = np.arange(len(trace.next_ids))
    probabilities = trace.probabilities
    matrix = checkpoint.output_matrix()
    tied = any(checkpoint.model.output.weight is each.tokens.weight for each in checkpoint.model.embeddings.values())
    largest, text = trace.logits.max(axis=-1), trace.logits[rows, list(trace.next_ids)]
    logits = {"in": lengths(stream.final), "largest": largest, "text": text, "out": lengths(trace.logits)}
    best = {"in": logits["out"], "out": probabilities.max(axis=-1), "text": trace.target_probabilities}
    best |= {"entropy": entropy(probabilities), "nats": trace.target_log_probabilities}
    facts = {"vocabulary": trace.logits.shape[-1]}
    output = Box(
        stream.name,
        None,
        "output",
        logits,
        matrices={"W_U": matrix.shape[::-1]},
        parameters=matrix.size,
        shared=tied,
        multiply_adds=len(stream.tokens) * matrix.size,
        facts=facts,
    )
    return [output, Box(stream.name, None, "softmax", best, facts=facts)]
