"""Figure 1 of the paper for one run: each box of the model, its size and work, and what it does to every token.

boxes = model_boxes(translator, trace)
{box.name: box.values["out"][3] for box in boxes if box.stack == "decoder"}  # the way of target token 3
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from model.analysis.distributions import entropy
from model.analysis.residual_stream import lengths, measure_stream
from model.background.sizes import multiply_adds
from model.checkpoints.checkpoint import Checkpoint
from model.interventions import Intervention, PositionsOff, ResidualOff, SublayerOff
from model.trace import Array, Attention, Stream, SubLayer, Trace

ATTENTIONS = ("self_attn", "cross_attn")
SIDES = {"encoder": "source", "decoder": "target"}
SYMBOLS = {"tokens": "E", "positions": "P", "norm": "γ", "q_norm": "γ_Q", "k_norm": "γ_K", "final_norm": "γ"}
"""of learned matrices that have no letter in the code"""


@dataclass(frozen=True)
class Box:
    """One box of figure 1."""

    stack: str
    """encoder or decoder"""
    layer: int | None
    """None: outside the layers"""
    part: str
    """embedding, positions, self_attn, cross_attn, feed_forward, norm, add, add_norm, output or softmax"""
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

    @property
    def name(self) -> str:
        """encoder.embedding, decoder.3.cross_attn or decoder.3.cross_attn.add_norm."""
        inside = self.sublayer if self.sublayer != self.part else None
        return ".".join(str(each) for each in (self.stack, self.layer, inside, self.part) if each is not None)

    def switches(self) -> dict[str, Intervention]:
        """How it can be switched off: "off" and "residual", as far as it can."""
        place = {"stack": self.stack, "layer": self.layer, "name": self.sublayer}
        if self.part == "positions":
            return {"off": PositionsOff(SIDES[self.stack])}
        if self.part == self.sublayer:
            return {"off": SublayerOff(**place), "residual": ResidualOff(**place)}
        return {"residual": ResidualOff(**place)} if self.part in ("add", "add_norm") else {}


def model_boxes(checkpoint: Checkpoint, trace: Trace) -> tuple[Box, ...]:
    """Every box in the order in which a token goes through them, the encoder's first."""
    tokens = [len(trace.streams[name].tokens) if name in trace.streams else 0 for name in SIDES]
    work = multiply_adds(checkpoint.config, *tokens)
    boxes: list[Box] = []
    for name, stream in trace.streams.items():
        boxes += _input_boxes(checkpoint, stream, first=not boxes)
        shares = measure_stream(trace, name).share[:, 1:].T
        for sublayer, share in zip(stream.sublayers, shares, strict=True):
            boxes += _sublayer_boxes(checkpoint, trace, sublayer, share, work)
        last = stream.sublayers[-1]
        if last.placement == "pre":
            learned = _learned(checkpoint, f"{name}.final_norm")
            ends = {"in": lengths(last.after), "out": lengths(stream.final)}
            boxes.append(Box(name, None, "norm", ends, facts={"norm": last.norm.kind}, **learned))
    return (*boxes, *_output_boxes(checkpoint, trace, work["output"].total))


def box_arrays(checkpoint: Checkpoint, trace: Trace) -> dict[str, Array]:
    """Parameters, multiply-adds and every value of each box."""
    boxes = model_boxes(checkpoint, trace)
    arrays = {name: np.array([getattr(box, name) for box in boxes]) for name in ("name", "parameters", "multiply_adds")}
    values = {f"{box.name} {name}": array for box in boxes for name, array in box.values.items()}
    return {**arrays, **values, "log_probability": np.array(trace.log_probability)}


def switch_off_each(checkpoint: Checkpoint, trace: Trace) -> Iterator[dict[str, float]]:
    """Run the same tokens again with one box off, or without its residual, each in turn.

    Yields:
        log p of the text in nats by box and switch, "decoder.1.cross_attn residual"; NaN where not yet run.
    """
    switches = {
        f"{box.name} {switch}": change
        for box in model_boxes(checkpoint, trace)
        if box.part not in ("add", "add_norm")
        for switch, change in box.switches().items()
    }
    found = dict.fromkeys(switches, np.nan)
    for name, change in switches.items():
        found[name] = checkpoint.rerun(trace, (*trace.interventions, change)).log_probability
        yield dict(found)


def _input_boxes(checkpoint: Checkpoint, stream: Stream, first: bool) -> list[Box]:
    embedded, path = stream.embedded, "src_embedding" if stream.name == "encoder" else "tgt_embedding"
    scale = checkpoint.embedding_scale
    embedding = lengths(embedded.embedding)
    learned = _learned(checkpoint, f"{path}.tokens", "tokens")
    tied = not first and checkpoint.config.tie_embeddings
    values = {"in": embedding / scale, "out": embedding}
    boxes = [Box(stream.name, None, "embedding", values, shared=tied, facts={"scale": scale}, **learned)]
    table = checkpoint.positional_encoding(SIDES[stream.name])
    if table is not None:
        values = {"in": embedding, "added": lengths(embedded.positional), "out": lengths(embedded.sum)}
        parameters = table.size if checkpoint.config.positions == "learned" else 0
        facts = {"positions": checkpoint.config.positions}
        boxes.append(Box(stream.name, None, "positions", values, None, {"P": table.shape}, parameters, facts=facts))
    return boxes


def _sublayer_boxes(checkpoint: Checkpoint, trace: Trace, sublayer: SubLayer, share: Array, work: Mapping) -> list[Box]:
    """The sub-layer and what stands around it: "Add & norm" after it, or a norm before and a sum after it."""
    stack, layer, name = sublayer.stack, sublayer.layer, sublayer.name
    before, out, added, normed = (lengths(getattr(sublayer, each)) for each in ("before", "out", "added", "normed"))
    place, pre = (stack, layer), sublayer.placement == "pre"
    ends = {"in": normed if pre else before, "out": out, "share": share}
    learned = _learned(checkpoint, f"{stack}.layers.{layer}.{name}")
    kind = "cross" if name == "cross_attn" else f"{stack}_self"
    part = work[kind if name in ATTENTIONS else f"{stack}_feed_forward"]
    facts: dict[str, Any] = {}
    pattern = None
    if name in ATTENTIONS:
        attention = trace.attention(kind, layer)
        ends |= _attention_values(attention)
        pattern = np.where(attention.mask, attention.pattern, np.nan)
        kv_heads = trace.kind(kind).kv_heads
        facts = {"kv_heads": kv_heads, "rotary": attention.rotary is not None, "scale": attention.scale}
    else:
        ends |= {"hidden": lengths(sublayer.hidden), "active": (sublayer.hidden > 0).sum(axis=-1).astype(float)}
        if sublayer.gate is not None:
            ends |= {"gate": lengths(sublayer.gate), "up": lengths(sublayer.up)}
        facts = {"activation": checkpoint.config.activation, "d_ff": sublayer.hidden.shape[-1]}
    total = part.total // part.layers
    inner = Box(*place, name, ends, name, multiply_adds=total, pattern=pattern, facts=facts, **learned)
    norm = _learned(checkpoint, f"{stack}.layers.{layer}.{name}_residual")
    kind_of_norm = {"norm": sublayer.norm.kind}
    sums = {"residual": before, "update": out, "added": added, "share": share, "out": lengths(sublayer.after)}
    if pre:
        first = Box(*place, "norm", {"in": before, "out": normed}, name, facts=kind_of_norm, **norm)
        return [first, inner, Box(*place, "add", sums, name)]
    return [inner, Box(*place, "add_norm", sums, name, facts=kind_of_norm, **norm)]


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


def _output_boxes(checkpoint: Checkpoint, trace: Trace, work: int) -> list[Box]:
    """The output matrix and the softmax, of the stream whose rows predict."""
    *_, stream = trace.streams.values()
    rows = np.arange(len(trace.next_ids))
    probabilities = trace.probabilities
    matrix = _learned(checkpoint, "output", "output")
    tied = checkpoint.config.tie_embeddings
    largest, text = trace.logits.max(axis=-1), trace.logits[rows, list(trace.next_ids)]
    logits = {"in": lengths(stream.final), "largest": largest, "text": text, "out": lengths(trace.logits)}
    best = {"in": logits["out"], "out": probabilities.max(axis=-1), "text": trace.target_probabilities}
    best |= {"entropy": entropy(probabilities), "nats": trace.target_log_probabilities}
    facts = {"vocabulary": trace.logits.shape[-1]}
    return [
        Box(stream.name, None, "output", logits, None, shared=tied, multiply_adds=work, facts=facts, **matrix),
        Box(stream.name, None, "softmax", best, facts=facts),
    ]


def _learned(checkpoint: Checkpoint, path: str, symbol: str | None = None) -> dict[str, Any]:
    """`matrices` and `parameters` of the module at this path; biases are counted, not listed."""
    matrices, count = {}, 0
    for name, parameter in checkpoint.model.get_submodule(path).named_parameters():
        count += parameter.numel()
        module = name.removesuffix(".weight") if name != "weight" else symbol or path.split(".")[-1]
        if name.endswith("bias") and "norm" not in f"{path}.{name}":
            continue
        shape = tuple(parameter.shape)
        # A Linear stores (out, in); an embedding is (vocabulary, d_model) already.
        shape = shape[::-1] if symbol != "tokens" else shape
        matrices[_symbol(module, name)] = shape
    return {"matrices": matrices, "parameters": count}


def _symbol(module: str, name: str) -> str:
    if name.endswith("bias"):
        return "β"
    if module.startswith("w_"):
        return f"W_{module[2:].upper() if len(module) == 3 else module[2:]}"
    return SYMBOLS.get(module, "W_U")
