"""The one place that builds a Trace: run the model once, teacher-forced, and read its hook points."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from model.cancel import check_cancelled
from model.hooks import recording
from model.interventions import Intervention, applied
from model.network.attention import MultiHeadAttention
from model.network.network import EMBEDDINGS, Network
from model.network.residual import Residual
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

Activations = Mapping[str, Array]


class Vocabulary(Protocol):
    """What the tracer needs of a tokenizer."""

    def tokens(self, ids: Iterable[int]) -> list[str]: ...


@torch.inference_mode()
def record(
    model: Network, texts: Sequence[Sequence[int]], interventions: Sequence[Intervention] = ()
) -> dict[str, Array]:
    """All activations of one teacher-forced run by hook point path, without the batch dimension.

    Args:
        model: in evaluation mode.
        texts: token ids that each stack reads, the encoder's first: a source with </s> last, a target with <s> first
            and without its last token, a line with <s> first.
        interventions: what to change during the run.
    """
    check_cancelled()
    device = model.output.weight.device
    inputs = [torch.tensor([list(ids)], device=device) for ids in texts]
    with applied(model, interventions), recording(model) as activations:
        model(*inputs)
    return {path: _numpy(tensor if path.endswith(".positional") else tensor[0]) for path, tensor in activations.items()}


@dataclass(frozen=True)
class _Reader:
    """Cuts one run's activations into the parts of a Trace."""

    model: Network
    activations: Activations
    reads: Mapping[str, Tokens]
    """by stream: the token of each row"""
    predicts: Mapping[str, Tokens]
    """by stream: what each row should predict; a stream whose rows predict nothing is missing"""

    def attention(self, kind: Kind, layer: int) -> Attention:
        path, module = self.model.attentions()[kind.name, layer]
        residual = self.model.get_submodule(f"{path}_residual")
        query_input = self.activations[f"{path}_residual.{'normed' if residual.pre_norm else 'before'}"]
        queries, keys = self.reads[kind.queries], self.reads[kind.keys]
        group = kind.heads // kind.kv_heads
        names = ("q", "k", "v", "scores", "scaled", "mask", "pattern", "z", "out")
        return Attention(
            kind=kind.name,
            layer=layer,
            query_tokens=queries.labels,
            key_tokens=keys.labels,
            query_input=query_input,
            key_input=self.activations["memory"] if kind.crosses else query_input,
            projections=_projections(module),
            temperature=self.activations[f"{path}.temperature"][:, 0, 0],
            scale=1 / module.divisor,
            causal=kind.causal,
            crosses=kind.crosses,
            predicts=self.predicts.get(kind.queries) if kind.queries == "decoder" else None,
            query_special=queries.special,
            key_special=keys.special,
            bias=self.activations.get(f"{path}.bias"),
            window=None if kind.crosses else self.model.config.window or None,
            kv_head=tuple(head // group for head in range(kind.heads)),
            qk_norm=self._qk_norm(path, module, group),
            rotary=self._rotary(path, module, group),
            **{name: self.activations[f"{path}.{name}"] for name in names},
        )

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
        path = EMBEDDINGS[name]
        embedding = self.activations[f"{path}.embedding"]
        return Stream(
            name=name,
            label=label,
            tokens=self.reads[name],
            predicts=self.predicts.get(name),
            embedded=Embedded(
                embedding=embedding,
                positional=self.activations.get(f"{path}.positional", _numpy(torch.zeros(embedding.shape))),
                sum=self.activations[f"{path}.sum"],
            ),
            sublayers=tuple(self._sublayers(name)),
            final=self.activations["final" if name in self.predicts else "memory"],
        )

    def _sublayers(self, stack: StackName) -> Iterator[SubLayer]:
        for layer, block in enumerate(getattr(self.model, stack).layers):
            for name in ("self_attn", "cross_attn", "feed_forward"):
                if hasattr(block, name):
                    yield self._sublayer(stack, layer, name, getattr(block, f"{name}_residual"))

    def _sublayer(self, stack: StackName, layer: int, name: str, residual: Residual) -> SubLayer:
        path = f"{stack}.layers.{layer}.{name}"
        before, added, normed = (
            self.activations[f"{path}_residual.{point}"] for point in ("before", "added", "normed")
        )
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
            norm=read_norm(residual.norm),
            gate=self.activations.get(f"{path}.gate"),
            up=self.activations.get(f"{path}.up"),
        )


def build_trace(
    model: Network,
    tokenizer: Vocabulary,
    checkpoint: tuple[str, str],
    reads: Mapping[StackName, Tokens],
    predicts: Mapping[StackName, Tokens],
    interventions: Sequence[Intervention] = (),
) -> Trace:
    """Run the model once, teacher-forced, and return everything that it computed.

    Args:
        model: in evaluation mode.
        tokenizer: the model's vocabulary.
        checkpoint: its name and the SHA-256 of its weights, which the Trace carries.
        reads: what each stack reads, the encoder's first.
        predicts: what each row of a stack should predict, for the stack whose rows do.
        interventions: what to change during the run.
    """
    activations = record(model, [tokens.ids for tokens in reads.values()], interventions)
    reader = _Reader(model, activations, reads, predicts)
    labels = {"encoder": "Source", "decoder": "Target"} if len(reads) > 1 else dict.fromkeys(reads, "Text")
    return Trace(
        checkpoint=checkpoint[0],
        checkpoint_hash=checkpoint[1],
        device=str(model.output.weight.device),
        interventions=tuple(interventions),
        kinds=model.kinds,
        streams={name: reader.stream(name, labels[name]) for name in reads},
        attentions={(kind.name, layer): reader.attention(kind, layer) for kind in model.kinds for layer in kind.layers},
        logits=activations["logits"],
        candidates=most_probable(activations["logits"], tokenizer),
    )


def read_norm(norm: nn.LayerNorm | nn.RMSNorm) -> Norm:
    """A norm's formula and what it learned."""
    kind = "RMSNorm" if isinstance(norm, nn.RMSNorm) else "LayerNorm"
    beta = getattr(norm, "bias", None)
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


def most_probable(logits: Array, tokenizer: Vocabulary) -> tuple[tuple[Candidate, ...], ...]:
    """The most probable next tokens of each row, of the whole vocabulary."""
    probabilities, ids = torch.tensor(logits).double().softmax(-1).topk(min(N_CANDIDATES, logits.shape[-1]))
    return tuple(
        tuple(Candidate(*found) for found in zip(tokenizer.tokens(row_ids), row_ids, row, strict=True))
        for row_ids, row in zip(ids.tolist(), probabilities.tolist(), strict=True)
    )


def _numpy(tensor: Tensor) -> Array:
    """Read-only: on a CPU the array may share its memory with the weights, which all sessions use."""
    array = tensor.detach().cpu().numpy()
    array.flags.writeable = False
    return array
