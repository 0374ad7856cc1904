"""The one place that builds a Trace: run the model once, teacher-forced, and read its hook points."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from model.cancel import check_cancelled
from model.hooks import Call, explicit_path, hook_points, keeping_calls, recording
from model.interventions import Intervention, applied
from model.network.attention import MultiHeadAttention
from model.network.network import EMBEDDINGS, Network
from model.network.residual import BatchNorm, Residual
from model.on_demand import MappingOnDemand, SequenceOnDemand
from model.trace import (
    Array,
    Attention,
    Candidate,
    Embedded,
    Kind,
    Norm,
    Projections,
    QKNorm,
    Rotary,
    StackName,
    Stream,
    SubLayer,
    Tokens,
    Trace,
)

N_CANDIDATES = 10
"""Most probable next tokens that a Trace lists for each position."""

EVERYTHING_BYTES = 150_000_000
"""A run whose activations are larger keeps what its layers read, and computes the rest when it is looked at."""
CELL_BYTES = 13
"""of a query, a key and a head: scores, scaled and weights as float32, and the mask"""
KEPT_CELL_BYTES = 5
"""of these, what the pictures of all heads read: the weights and the mask"""
VECTORS = 15
"""of width d_model that a layer's activations contain for each position, about"""

Activations = Mapping[str, Array]
Made = TypeVar("Made")


class Vocabulary(Protocol):
    """What the tracer needs of a tokenizer."""

    def tokens(self, ids: Iterable[int]) -> list[str]: ...


@torch.inference_mode()
def record(
    model: Network,
    texts: Sequence[Sequence[int]],
    interventions: Sequence[Intervention] = (),
    paths: Sequence[str] | None = None,
) -> dict[str, Array]:
    """All activations of one teacher-forced run by hook point path, or those at `paths`, without the batch dimension.

    `texts` are token ids that each stack reads, the encoder's first: a source with </s> last, a target with <s> first
    and without its last token, a line with <s> first.
    """
    check_cancelled()
    device = model.output.weight.device
    inputs = [torch.tensor([list(ids)], device=device) for ids in texts]
    with applied(model, interventions), explicit_path(), recording(model, paths) as activations:
        model(*inputs)
    return {path: _numpy(tensor if path.endswith(".positional") else tensor[0]) for path, tensor in activations.items()}


class ActivationsOnDemand(Mapping[str, Array]):
    """The activations of a run too long to keep them all: those inside a layer are computed again when asked for.

    Kept are the inputs of each layer, and attention weights that are not too large; a layer runs alone on its own,
    under the run's interventions, through the same operations, so that every number is the run's own, bit for bit. The
    layers that were asked for last are kept, too.
    """

    def __init__(
        self,
        model: Network,
        outside: Mapping[str, Array],
        calls: Mapping[nn.Module, Sequence[Call]],
        interventions: Sequence[Intervention],
        layer_bytes: int,
    ) -> None:
        self._model, self._outside, self._calls, self._interventions = model, outside, calls, interventions
        layers = {
            f"{name}.layers.{i}": (name, i) for name, stack in model.stacks.items() for i in range(len(stack.layers))
        }
        self._layers = layers
        kept = max(EVERYTHING_BYTES // layer_bytes, 1)
        self._layer = lru_cache(kept)(self._run_layer)
        inputs = {id(part): part for each in calls.values() for call in each for part in _tensors(call)}
        inside = [array.nbytes for path, array in outside.items() if self._layer_of(path) in layers]
        self.nbytes = kept * layer_bytes + sum(part.nbytes for part in inputs.values()) + sum(inside)

    def __getitem__(self, path: str) -> Array:
        layer = self._layer_of(path)
        again = layer in self._layers and path not in self._outside
        return (self._layer(layer) if again else self._outside)[path]

    @staticmethod
    def _layer_of(path: str) -> str:
        return ".".join(path.split(".")[:3])

    def weights_and_mask(self, attention: str) -> tuple[Array, Array] | None:
        """Those of the attention at this path, where they were kept."""
        kept = [self._outside.get(f"{attention}.{name}") for name in ("pattern", "mask")]
        return None if kept[0] is None or kept[1] is None else (kept[0], kept[1])

    def __iter__(self) -> Iterator[str]:
        yield from self._outside
        for layer in self._layers:
            yield from self._layer(layer)

    def __len__(self) -> int:
        return len(list(iter(self)))

    @torch.inference_mode()
    def _run_layer(self, layer: str) -> dict[str, Array]:
        check_cancelled()
        paths = [p for p in hook_points(self._model) if p.startswith(f"{layer}.") and p not in self._outside]
        with applied(self._model, self._interventions), recording(self._model, paths) as activations, explicit_path():
            self._model.rerun_layer(*self._layers[layer], self._calls)
        return {path: _numpy(tensor[0]) for path, tensor in activations.items()}


@torch.inference_mode()
def record_on_demand(
    model: Network, texts: Sequence[Sequence[int]], interventions: Sequence[Intervention], layer_bytes: int
) -> ActivationsOnDemand:
    """As `record`, of a model whose `layers_run_alone`, but what is inside a layer is computed when it is asked for:
    all but weights that are small enough. The activations of one layer have about `layer_bytes`."""
    check_cancelled()
    inputs = [torch.tensor([list(ids)], device=model.output.weight.device) for ids in texts]
    outside = [
        path for path in hook_points(model) if not path.startswith(tuple(f"{name}.layers." for name in model.stacks))
    ]
    lengths = dict(zip(model.stacks, map(len, texts), strict=True))
    cells = sum(kind.heads * len(kind.layers) * lengths[kind.queries] * lengths[kind.keys] for kind in model.kinds)
    if KEPT_CELL_BYTES * cells <= EVERYTHING_BYTES:
        outside += [f"{path}.{name}" for path, _ in model.attentions().values() for name in ("pattern", "mask")]
    with (
        applied(model, interventions),
        recording(model, outside) as activations,
        explicit_path(),
        keeping_calls() as calls,
    ):
        model(*inputs)
    arrays = {path: _numpy(x if path.endswith(".positional") else x[0]) for path, x in activations.items()}
    return ActivationsOnDemand(model, arrays, calls, interventions, layer_bytes)


def layer_sizes(model: Network, lengths: Mapping[StackName, int]) -> list[int]:
    """Bytes of the activations of each layer, about: of a text of `lengths` tokens by stack."""
    config, sizes = model.config, []
    for name, stack in model.stacks.items():
        kinds = [kind for kind in model.kinds if kind.queries == name]
        vectors = 4 * lengths[name] * (VECTORS * config.d_model + config.d_ff)
        for layer in range(len(stack.layers)):
            cells = [k.heads * lengths[k.queries] * lengths[k.keys] for k in kinds if layer in k.layers]
            sizes.append(CELL_BYTES * sum(cells) + vectors)
    return sizes


def read_activations(
    model: Network, texts: Mapping[StackName, Sequence[int]], interventions: Sequence[Intervention]
) -> Activations:
    """All of a run's activations at once, or those of its layers on demand where all together would be too large."""
    sizes = layer_sizes(model, {name: len(ids) for name, ids in texts.items()})
    if sum(sizes) <= EVERYTHING_BYTES or not model.layers_run_alone:
        return record(model, list(texts.values()), interventions)
    return record_on_demand(model, list(texts.values()), interventions, max(sizes))


def made_from(activations: Activations, addresses: Sequence[Any], make: Callable[[Any], Made]) -> Sequence[Made]:
    """`make` of each address: all at once, or on demand where the activations are."""
    if isinstance(activations, ActivationsOnDemand):
        return SequenceOnDemand(addresses, make)
    return tuple(map(make, addresses))


def attentions_from(
    activations: Activations, paths: Mapping[tuple[str, int], str], make: Callable[[tuple[str, int]], Attention]
) -> Mapping[tuple[str, int], Attention]:
    """The attentions, whose `paths` are by (kind, layer): all at once, or on demand where the activations are."""
    if isinstance(activations, ActivationsOnDemand):
        kept = {place: activations.weights_and_mask(path) for place, path in paths.items()}
        return MappingOnDemand(list(paths), make, activations.nbytes, {place: x for place, x in kept.items() if x})
    return {place: make(place) for place in paths}


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        yield from _tensors(list(value.values()))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _tensors(part)


LABELS: Mapping[StackName, str] = {"encoder": "Source", "decoder": "Target"}


@dataclass(frozen=True)
class Reader:
    """Cuts one run's activations into the parts of a Trace; what differs by network is in methods of their own."""

    model: Network
    activations: Activations
    reads: Mapping[StackName, Tokens]
    """by stream: the token of each row"""
    predicts: Mapping[StackName, Tokens]
    """by stream: what each row should predict; a stream whose rows predict nothing is missing"""
    interventions: Sequence[Intervention]

    @cached_property
    def attentions(self) -> Mapping[tuple[str, int], tuple[str, Any]]:
        """(kind, layer) -> (path, module)."""
        return self.model.attentions()

    @property
    def whole(self) -> dict[tuple[str, int], str]:
        """(kind, layer) -> path, of the attentions whose steps can all be read."""
        return {place: path for place, (path, _) in self.attentions.items()}

    @property
    def remarks(self) -> dict[str, Any]:
        """Fields of the Trace about what could not be read."""
        return {}

    def attention(self, kind: Kind, layer: int) -> Attention:
        path, module = self.attentions[kind.name, layer]
        queries, keys = self.reads[kind.queries], self.reads[kind.keys]
        query_input, key_input = self._inputs(path, kind)
        group = module.n_heads // module.n_kv_heads
        names = ("q", "k", "v", "scores", "scaled", "mask", "pattern", "z", "out")
        return Attention(
            kind=kind.name,
            layer=layer,
            query_tokens=queries.labels,
            key_tokens=keys.labels,
            query_input=query_input,
            key_input=key_input,
            temperature=self.activations[f"{path}.temperature"][:, 0, 0],
            scale=1 / module.divisor,
            causal=kind.causal,
            crosses=kind.crosses,
            predicts=self.predicts.get(kind.queries) if kind.queries == "decoder" else None,
            query_special=queries.special,
            key_special=keys.special,
            query_words=queries.words,
            key_words=keys.words,
            kv_head=tuple(head // group for head in range(module.n_heads)),
            qk_norm=self._qk_norm(path, module, group),
            rotary=self._rotary(path, module, group),
            **self._parts(path, module, kind),
            **{name: self.activations[f"{path}.{name}"] for name in names},
        )

    def _inputs(self, path: str, kind: Kind) -> tuple[Array, Array]:
        """What W_Q and what W_K and W_V are applied to."""
        residual = self.model.get_submodule(f"{path}_residual")
        query_input = self.activations[f"{path}_residual.{'normed' if residual.pre_norm else 'before'}"]
        return query_input, self.activations["memory"] if kind.crosses else query_input

    def _parts(self, path: str, module: MultiHeadAttention, kind: Kind) -> dict[str, Any]:
        """The matrices, and what else the scores are made of."""
        return {
            "projections": _projections(module),
            "bias": self.activations.get(f"{path}.bias"),
            "window": None if kind.crosses else self.model.config.window or None,
        }

    def _qk_norm(self, path: str, module: MultiHeadAttention, group: int) -> QKNorm | None:
        if not module.qk_norm:
            return None
        q, k = (self.activations[f"{path}.{name}_pre"] for name in "qk")
        return QKNorm(q, _share(k, group), read_norm(module.q_norm), read_norm(module.k_norm))

    def _rotary(self, path: str, module: MultiHeadAttention, group: int) -> Rotary | None:
        if module.rotary is None:
            return None
        point = "normed" if module.qk_norm else "pre"
        q, k = (self.activations[f"{path}.{name}_{point}"] for name in "qk")
        cos, sin = (_numpy(table[: q.shape[1]]) for table in (module.rotary.cos, module.rotary.sin))
        return Rotary(q, _share(k, group), cos, sin)

    def stream(self, name: StackName, label: str) -> Stream:
        sublayers = made_from(self.activations, list(self._addresses(name)), lambda place: self._sublayer(*place))
        return Stream(
            name=name,
            label=label,
            tokens=self.reads[name],
            predicts=self.predicts.get(name),
            embedded=self._embedded(name),
            sublayers=sublayers,
            final=self._final(name, sublayers),
            last_norm=self._last_norm(name),
        )

    def _final(self, name: StackName, _: Sequence[SubLayer]) -> Array:
        """What the last norm of a stack hands on."""
        return self.activations["final" if name in self.predicts else "memory"]

    def _last_norm(self, name: StackName) -> Norm | None:
        norm = self.model.stacks[name].final_norm
        return None if isinstance(norm, nn.Identity) else read_norm(norm)

    def _embedded(self, name: StackName) -> Embedded:
        path = EMBEDDINGS[name]
        embedding = self.activations[f"{path}.embedding"]
        positional = self.activations.get(f"{path}.positional", _numpy(torch.zeros(embedding.shape)))
        return Embedded(embedding, positional, self.activations[f"{path}.sum"])

    def _addresses(self, stack: StackName) -> Iterator[tuple[StackName, int, str, Residual]]:
        for layer, block in enumerate(getattr(self.model, stack).layers):
            for name in ("self_attn", "cross_attn", "feed_forward"):
                if hasattr(block, name):
                    yield stack, layer, name, getattr(block, f"{name}_residual")

    def _sublayer(self, stack: StackName, layer: int, name: str, residual: Residual) -> SubLayer:
        path = f"{stack}.layers.{layer}.{name}"
        before, added, normed = (
            self.activations[f"{path}_residual.{point}"] for point in ("before", "added", "normed")
        )
        # A norm that an intervention leaves out hands on what it reads.
        left_out = np.array_equal(normed, before if residual.pre_norm else added)
        return SubLayer(
            stack=stack,
            layer=layer,
            name=name,
            before=before,
            out=self.activations[f"{path}.out"],
            added=added,
            normed=normed,
            after=added if residual.pre_norm else normed,
            hidden=self.activations.get(f"{path}.hidden"),
            placement="pre" if residual.pre_norm else "post",
            norm=None if left_out or isinstance(residual.norm, nn.Identity) else read_norm(residual.norm),
            gate=self.activations.get(f"{path}.gate"),
            up=self.activations.get(f"{path}.up"),
            b_2=self._b_2(stack, layer) if name == "feed_forward" else None,
            adds=residual.adds,
        )

    def _b_2(self, stack: StackName, layer: int) -> Array | None:
        bias = self.model.stacks[stack].layers[layer].feed_forward.w_2.bias
        return None if bias is None else _numpy(bias)


def build_trace(
    model: Network,
    tokenizer: Vocabulary,
    checkpoint: tuple[str, str],
    reads: Mapping[StackName, Tokens],
    predicts: Mapping[StackName, Tokens],
    interventions: Sequence[Intervention] = (),
    make_reader: type[Reader] = Reader,
) -> Trace:
    """Run the model once, teacher-forced, and return everything that it computed.

    `checkpoint` is its name and the SHA-256 of its weights, which the Trace carries; `reads` is what each stack reads,
    the encoder's first, and `predicts` what each row should predict, of the stack whose rows do.
    """
    activations = read_activations(model, {name: tokens.ids for name, tokens in reads.items()}, interventions)
    kinds = {kind.name: kind for kind in model.kinds}
    reader = make_reader(model, activations, reads, predicts, interventions)
    logits = activations["logits"]
    labels = LABELS if len(reads) > 1 else dict.fromkeys(reads, "Text")
    return Trace(
        checkpoint=checkpoint[0],
        checkpoint_hash=checkpoint[1],
        device=str(model.output.weight.device),
        interventions=tuple(interventions),
        kinds=model.kinds,
        streams={name: reader.stream(name, labels[name]) for name in reads},
        attentions=attentions_from(
            activations, reader.whole, lambda place: reader.attention(kinds[place[0]], place[1])
        ),
        logits=logits,
        # Few rows are looked at, and the probabilities of all take as long as two layers.
        candidates=SequenceOnDemand(logits, lambda row: most_probable(row, tokenizer)),
        **reader.remarks,
    )


def read_norm(norm: nn.LayerNorm | nn.RMSNorm | BatchNorm) -> Norm:
    """A norm's formula and what it learned."""
    kind, beta = "RMSNorm" if isinstance(norm, nn.RMSNorm) else "LayerNorm", getattr(norm, "bias", None)
    if isinstance(norm, BatchNorm):
        return Norm("BatchNorm", *map(_numpy, (norm.weight, beta)), norm.eps, *map(_numpy, (norm.mean, norm.variance)))
    return Norm(kind, _numpy(norm.weight), None if beta is None else _numpy(beta), norm.eps)


def _projections(module: MultiHeadAttention) -> Projections:
    """nn.Linear keeps (out, in): transposed, and its columns cut into heads; keys and values once a query head."""
    heads = {"q": module.n_heads, "k": module.n_kv_heads, "v": module.n_kv_heads}

    def cut(name: str) -> tuple[Array, Array]:
        linear, copies = getattr(module, f"w_{name}"), module.n_heads // heads[name]
        w = linear.weight.T.unflatten(1, (heads[name], -1)).movedim(1, 0)
        return _share(_numpy(w), copies), _share(_numpy(_bias(linear).unflatten(0, (heads[name], -1))), copies)

    (w_q, b_q), (w_k, b_k), (w_v, b_v) = map(cut, "qkv")
    w_o, b_o = _numpy(module.w_o.weight.T.unflatten(0, (module.n_heads, -1))), _numpy(_bias(module.w_o))
    return Projections(w_q, w_k, w_v, b_q, b_k, b_v, w_o, b_o, biases=module.w_o.bias is not None)


def _bias(linear: nn.Linear) -> Tensor:
    """(out,): zeros where the model has none."""
    return torch.zeros_like(linear.weight[:, 0]) if linear.bias is None else linear.bias


def _share(vectors: Array, copies: int) -> Array:
    """(kv_heads, ...) -> (heads, ...): what each query head reads."""
    if copies == 1:
        return vectors
    repeated = vectors.repeat(copies, axis=0)
    repeated.flags.writeable = False
    return repeated


def most_probable(logits: Array, tokenizer: Vocabulary) -> tuple[Candidate, ...]:
    """The most probable next tokens of one row, (vocabulary,), with their probabilities of the whole vocabulary."""
    best = torch.tensor(logits).double().softmax(-1).topk(min(N_CANDIDATES, len(logits)))
    ids = best.indices.tolist()
    found = zip(tokenizer.tokens(ids), ids, best.values.tolist(), strict=True)
    return tuple(Candidate(*each) for each in found)


def _numpy(tensor: Tensor) -> Array:
    """Read-only: on a CPU the array may share its memory with the weights, which all sessions use."""
    array = tensor.detach().cpu().numpy()
    array.flags.writeable = False
    return array
