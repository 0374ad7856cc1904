"""The one place that builds a Trace: run the model once, teacher-forced, and read its hook points."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from model.cancel import check_cancelled
from model.hooks import recording
from model.interventions import Intervention, applied
from model.network.attention import MultiHeadAttention
from model.network.config import BOS, EOS
from model.network.encoder_decoder import Transformer
from model.network.residual import Residual
from model.trace import (
    Array,
    Attention,
    Candidate,
    Embedded,
    Kind,
    Norm,
    Projections,
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

    def encode(self, text: str) -> list[int]: ...

    def tokens(self, ids: Iterable[int]) -> list[str]: ...

    def describe(self, ids: Sequence[int], text: str | None = None) -> Tokens: ...


@torch.inference_mode()
def record(
    model: Transformer, src_ids: Sequence[int], tgt_ids: Sequence[int], interventions: Sequence[Intervention] = ()
) -> dict[str, Array]:
    """All activations of one teacher-forced run by hook point path, without the batch dimension.

    Args:
        model: in evaluation mode.
        src_ids: source tokens, </s> last.
        tgt_ids: what the decoder reads: <s>, then the target but for its last token.
        interventions: what to change during the run.
    """
    check_cancelled()
    device = model.output.weight.device
    src, tgt = (torch.tensor([list(ids)], device=device) for ids in (src_ids, tgt_ids))
    with applied(model, interventions), recording(model) as activations:
        model(src, tgt)
    return {path: _numpy(tensor if path.endswith(".positional") else tensor[0]) for path, tensor in activations.items()}


@dataclass(frozen=True)
class _Reader:
    """Cuts one run's activations into the parts of a Trace."""

    model: Transformer
    activations: Activations
    tokens: Mapping[str, Tokens]
    """by stream: what its rows read"""
    predicts: Mapping[str, Tokens | None]
    """by stream: what its rows should predict"""

    def attention(self, kind: Kind, layer: int) -> Attention:
        path, module = self.model.attentions()[kind.name, layer]
        residual = self.model.get_submodule(f"{path}_residual")
        query_input = self.activations[f"{path}_residual.{'normed' if residual.pre_norm else 'before'}"]
        queries, keys = self.tokens[kind.queries], self.tokens[kind.keys]
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
            predicts=self.predicts[kind.queries],
            query_special=queries.special,
            key_special=keys.special,
            **{name: self.activations[f"{path}.{name}"] for name in names},
        )

    def stream(self, name: StackName, label: str, embedding: str, final: str) -> Stream:
        """One stack: the hook points of its input are under `embedding`, its output is at `final`."""
        parts = {point: self.activations[f"{embedding}.{point}"] for point in ("embedding", "positional", "sum")}
        return Stream(
            name=name,
            label=label,
            tokens=self.tokens[name],
            predicts=self.predicts[name],
            embedded=Embedded(**parts),
            sublayers=tuple(self._sublayers(name)),
            final=self.activations[final],
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
            norm=Norm("LayerNorm", _numpy(residual.norm.weight), _numpy(residual.norm.bias), residual.norm.eps),
        )


def build_trace(
    model: Transformer,
    tokenizer: Vocabulary,
    checkpoint: tuple[str, str],
    source: str,
    tgt_out: Sequence[int],
    interventions: Sequence[Intervention] = (),
) -> Trace:
    """Run the model once, teacher-forced, and return everything that it computed.

    Args:
        model: in evaluation mode.
        tokenizer: the model's vocabulary.
        checkpoint: its name and the SHA-256 of its weights, which the Trace carries.
        source: one sentence.
        tgt_out: ids of the finished target, </s> included.
        interventions: what to change during the run.
    """
    tokens = {
        "encoder": tokenizer.describe((*tokenizer.encode(source), EOS), source),
        "decoder": tokenizer.describe((BOS, *tgt_out[:-1])),
    }
    activations = record(model, tokens["encoder"].ids, tokens["decoder"].ids, interventions)
    reader = _Reader(model, activations, tokens, {"encoder": None, "decoder": tokenizer.describe(tgt_out)})
    return Trace(
        checkpoint=checkpoint[0],
        checkpoint_hash=checkpoint[1],
        device=str(model.output.weight.device),
        interventions=tuple(interventions),
        kinds=model.kinds,
        streams={
            "encoder": reader.stream("encoder", "Source", "src_embedding", "memory"),
            "decoder": reader.stream("decoder", "Target", "tgt_embedding", "final"),
        },
        attentions={(kind.name, layer): reader.attention(kind, layer) for kind in model.kinds for layer in kind.layers},
        logits=activations["logits"],
        candidates=_candidates(activations["logits"], tokenizer),
    )


def _projections(module: MultiHeadAttention) -> Projections:
    """nn.Linear keeps (out, in): transposed, and its columns cut into heads."""
    heads, d_k = module.n_heads, module.d_k
    cut = {
        f"w_{name}": _numpy(getattr(module, f"w_{name}").weight.T.unflatten(1, (heads, d_k)).movedim(1, 0))
        for name in "qkv"
    }
    cut |= {f"b_{name}": _numpy(getattr(module, f"w_{name}").bias.unflatten(0, (heads, d_k))) for name in "qkv"}
    return Projections(**cut, w_o=_numpy(module.w_o.weight.T.unflatten(0, (heads, d_k))), b_o=_numpy(module.w_o.bias))


def _candidates(logits: Array, tokenizer: Vocabulary) -> tuple[tuple[Candidate, ...], ...]:
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
