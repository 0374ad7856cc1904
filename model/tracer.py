"""The one place that builds a Trace: run the model once, teacher-forced, and read its hook points."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from model.cancel import check_cancelled
from model.hooks import recording
from model.interventions import Intervention, applied, temperatures
from model.network.attention import MultiHeadAttention
from model.network.config import BOS, EOS
from model.network.encoder_decoder import Transformer
from model.trace import Array, Attention, Candidate, Embedded, Projections, SubLayer, Trace

N_CANDIDATES = 10
"""Most probable next tokens that a Trace lists for each position."""

Activations = Mapping[str, Array]


class Vocabulary(Protocol):
    """What the tracer needs of a tokenizer."""

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: list[int]) -> str: ...

    def tokens(self, ids: Iterable[int]) -> list[str]: ...


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
    interventions: Sequence[Intervention]
    activations: Activations
    src_tokens: tuple[str, ...]
    tgt_tokens: tuple[str, ...]

    def attention(self, kind: str, layer: int) -> Attention:
        path, module = self.model.attentions()[kind, layer]
        query_input = self._sublayer_input(f"{path}_residual")
        names = ("q", "k", "v", "scores", "scaled", "mask", "pattern", "z", "out")
        return Attention(
            kind=kind,
            layer=layer,
            query_tokens=self.src_tokens if kind == "encoder_self" else self.tgt_tokens,
            key_tokens=self.tgt_tokens if kind == "decoder_self" else self.src_tokens,
            query_input=query_input,
            key_input=self.activations["memory"] if kind == "cross" else query_input,
            projections=_projections(module),
            temperature=np.array(
                temperatures(self.interventions, kind, layer, module.n_heads), self.activations[f"{path}.scaled"].dtype
            ),
            **{name: self.activations[f"{path}.{name}"] for name in names},
        )

    def sublayers(self) -> Iterator[SubLayer]:
        """Every residual block, in the order in which they run."""
        post_norm = self.model.config.norm == "post"
        for stack, names in (
            ("encoder", ("self_attn", "feed_forward")),
            ("decoder", ("self_attn", "cross_attn", "feed_forward")),
        ):
            for layer, name in product(range(len(getattr(self.model, stack).layers)), names):
                path = f"{stack}.layers.{layer}.{name}"
                added, normed = self.activations[f"{path}_residual.added"], self.activations[f"{path}_residual.normed"]
                yield SubLayer(
                    stack=stack,
                    layer=layer,
                    name=name,
                    before=self.activations[f"{path}_residual.before"],
                    out=self.activations[f"{path}.out"],
                    added=added,
                    normed=normed,
                    after=normed if post_norm else added,
                    hidden=self.activations.get(f"{path}.hidden"),
                )

    def embedded(self, name: str) -> Embedded:
        return Embedded(**{point: self.activations[f"{name}.{point}"] for point in ("embedding", "positional", "sum")})

    def _sublayer_input(self, residual: str) -> Array:
        return self.activations[f"{residual}.{'normed' if self.model.config.norm == 'pre' else 'before'}"]


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
    src_ids, tgt_ids = (*tokenizer.encode(source), EOS), (BOS, *tgt_out[:-1])
    activations = record(model, src_ids, tgt_ids, interventions)
    src_tokens, tgt_tokens = tuple(tokenizer.tokens(src_ids)), tuple(tokenizer.tokens(tgt_ids))
    reader = _Reader(model, interventions, activations, src_tokens, tgt_tokens)
    return Trace(
        checkpoint=checkpoint[0],
        checkpoint_hash=checkpoint[1],
        device=str(model.output.weight.device),
        interventions=tuple(interventions),
        source=source,
        translation=tokenizer.decode(list(tgt_out)),
        src_tokens=src_tokens,
        src_ids=src_ids,
        tgt_tokens=tgt_tokens,
        tgt_ids=tgt_ids,
        next_tokens=tuple(tokenizer.tokens(tgt_out)),
        next_ids=tuple(tgt_out),
        src_embedded=reader.embedded("src_embedding"),
        tgt_embedded=reader.embedded("tgt_embedding"),
        attentions={address: reader.attention(*address) for address in model.attentions()},
        sublayers=tuple(reader.sublayers()),
        memory=activations["memory"],
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
    """Read-only: on a CPU it may share its memory with the weights that every visitor's run uses."""
    array = tensor.detach().cpu().numpy()
    array.flags.writeable = False
    return array
