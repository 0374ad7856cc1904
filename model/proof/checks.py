"""The picture is the model: checks of one Trace against the running model, cheap enough to do live."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.analysis.softmax import softmax
from model.cancel import check_cancelled
from model.checkpoints.translator import Translator
from model.hooks import Edit, explicit_path
from model.interventions import Reading, applied
from model.interventions.base import bound
from model.network.encoder_decoder import Transformer
from model.trace import Array, Attention, SubLayer, Trace

CHAIN_TOLERANCE = 5e-5
ROW_TOLERANCE = 1e-6

Changes = Sequence[Mapping[str, Edit | Reading]]


@dataclass(frozen=True)
class Check:
    """One claim about a Trace, and how far the run is from it."""

    title: str
    explanation: str
    error: float
    """largest difference found; absolute, or relative to a matrix's largest number where that is above 1"""
    tolerance: float

    @property
    def passed(self) -> bool:
        return self.error <= self.tolerance


def prove(translator: Translator, trace: Trace) -> tuple[Check, ...]:
    """Check that hooks change nothing, that the chain of results closes, and that rows sum to 1."""
    check_cancelled()
    return (hooks_change_nothing(translator, trace), chain_closes(translator, trace), rows_sum_to_one(trace))


@torch.inference_mode()
def hooks_change_nothing(translator: Translator, trace: Trace) -> Check:
    """Claim 2: logits of a run that nobody records equal the Trace's, bit for bit."""
    model = translator.model
    device = model.output.weight.device
    src, tgt = (torch.tensor([ids], device=device) for ids in (trace.src_ids, trace.tgt_ids))
    with applied(model, trace.interventions), explicit_path():
        logits = model(src, tgt)[0].cpu().numpy()
    return Check(
        title="Watching changes nothing",
        explanation="The model was run again with no recording: its logits equal those shown, bit for bit.",
        error=float(np.abs(logits - trace.logits).max()),
        tolerance=0.0,
    )


def rows_sum_to_one(trace: Trace) -> Check:
    """Claim 5: each row of attention weights sums to 1 over the keys it may see, and is 0 on the others."""
    errors = [0.0]
    for attention in trace.attentions.values():
        visible = attention.mask.any(axis=-1)
        errors.append(float(np.abs(attention.pattern.sum(axis=-1) - visible).max()))
        if attention.pattern[~attention.mask].any():
            errors.append(math.inf)
    return Check(
        title="Rows sum to 1",
        explanation="In every head the weights of each query sum to 1, and are exactly 0 on masked keys.",
        error=float(np.max(errors)),
        tolerance=ROW_TOLERANCE,
    )


@torch.inference_mode()
def chain_closes(translator: Translator, trace: Trace) -> Check:
    """Claim 3: in double precision, each step computed from the one before it is the one shown."""
    errors = [relative_error(computed, shown) for computed, shown in _chain(translator, trace)]
    return Check(
        title="The chain closes",
        explanation="From the embeddings to the logits, each step worked out again in double precision from the "
        "step before it. The error is the largest difference to what the model did, as a share of the largest "
        "number in its matrix where that is above 1.",
        error=float(np.max(errors)),
        tolerance=CHAIN_TOLERANCE,
    )


def relative_error(computed: Array, shown: Array) -> float:
    """Single precision keeps seven digits: what is lost on scores in the hundreds is no error of the chain."""
    return float(np.abs(computed - shown).max() / max(1.0, np.abs(shown).max()))


def _chain(translator: Translator, trace: Trace) -> Iterator[tuple[Array, Array]]:
    """(computed from the step before, shown) for every step of the run."""
    model = translator.model
    changes = [intervention.edits(model) for intervention in trace.interventions]
    for name, ids, embedded in (
        ("src_embedding", trace.src_ids, trace.src_embedded),
        ("tgt_embedding", trace.tgt_ids, trace.tgt_embedded),
    ):
        embedding = getattr(model, name)
        yield _double(embedding.tokens.weight)[list(ids)] * embedding.scale, embedded.embedding
        positional = _double(embedding.positions)[: len(ids)]
        yield _changed(changes, f"{name}.positional", positional), embedded.positional
        yield embedded.embedding + embedded.positional.astype(np.float64), embedded.sum
    for attention in trace.attentions.values():
        yield from _attention_chain(model, changes, attention)
    stream = {"encoder": trace.src_embedded.sum, "decoder": trace.tgt_embedded.sum}
    for sublayer in trace.sublayers:
        yield stream[sublayer.stack], sublayer.before
        yield from _sublayer_chain(model, changes, sublayer)
        stream[sublayer.stack] = sublayer.after
    for name, x in stream.items():
        yield _final(model, name, x), trace.streams[name].final
    yield trace.streams["decoder"].final @ _double(model.output.weight).T, trace.logits


def _attention_chain(model: Transformer, changes: Changes, attention: Attention) -> Iterator[tuple[Array, Array]]:
    learned = attention.projections
    path, _ = model.attentions()[attention.kind, attention.layer]

    def changed(point: str, computed: Array) -> Array:
        return _changed(changes, f"{path}.{point}", computed, {f"{path}.mask": attention.mask})

    for name, source in (("q", attention.query_input), ("k", attention.key_input), ("v", attention.key_input)):
        w, b = (getattr(learned, f"{kind}_{name}").astype(np.float64) for kind in "wb")
        yield changed(name, source @ w + b[:, None]), getattr(attention, name)
    q, k, z = (getattr(attention, name).astype(np.float64) for name in "qkz")
    yield q @ k.transpose(0, 2, 1), attention.scores
    yield changed("scaled", attention.scores.astype(np.float64) * attention.scale), attention.scaled
    taus = np.ones((attention.n_heads, 1, 1), attention.temperature.dtype)
    yield changed("temperature", taus)[:, 0, 0], attention.temperature
    # Changed in the run's own precision: a small tau would magnify what double precision adds.
    minus_infinity = attention.scaled.dtype.type(-np.inf)
    masked = changed("masked", np.where(attention.mask, attention.pre_softmax, minus_infinity))
    masked = (masked / attention.temperature[:, None, None]).astype(np.float64)
    yield changed("pattern", softmax(masked)), attention.pattern
    yield changed("z", attention.pattern.astype(np.float64) @ attention.v), attention.z
    yield changed("out", (z @ learned.w_o).sum(axis=0) + learned.b_o), attention.out


def _changed(changes: Changes, path: str, computed: Array, earlier: Mapping[str, Array] | None = None) -> Array:
    """`computed`, with what the run's changes make of it at this hook point.

    `earlier` holds, by path, what an intervention may read of the run (`model.interventions.Reading`).
    """
    # In the run every activation but the positional encoding has a batch dimension.
    batched = not path.endswith(".positional")
    read = {name: torch.tensor(array)[None] for name, array in (earlier or {}).items()}
    activation = torch.tensor(computed)[None] if batched else torch.tensor(computed)
    for edits in changes:
        if edit := edits.get(path):
            edited = bound(edit, read)(activation)
            activation = activation if edited is None else edited
    return activation[0].numpy() if batched else activation.numpy()


def _sublayer_chain(model: Transformer, changes: Changes, sublayer: SubLayer) -> Iterator[tuple[Array, Array]]:
    block = getattr(model, sublayer.stack).layers[sublayer.layer]
    path = f"{sublayer.stack}.layers.{sublayer.layer}.{sublayer.name}"
    added = sublayer.before + sublayer.out.astype(np.float64)
    yield _changed(changes, f"{path}_residual.added", added, {f"{path}.out": sublayer.out}), sublayer.added
    yield sublayer.norm(sublayer.norm_input), sublayer.normed
    if sublayer.hidden is not None:
        w_1, b_1, w_2, b_2 = (_double(parameter) for parameter in block.feed_forward.parameters())
        x = torch.from_numpy((sublayer.normed if sublayer.placement == "pre" else sublayer.before) @ w_1.T + b_1)
        yield block.feed_forward.activation(x).numpy(), sublayer.hidden
        yield _changed(changes, f"{path}.out", sublayer.hidden @ w_2.T + b_2), sublayer.out


def _final(model: Transformer, stack: str, x: Array) -> Array:
    norm = getattr(model, stack).final_norm
    return _norm(norm, x) if isinstance(norm, nn.LayerNorm) else x.astype(np.float64)


def _norm(norm: nn.LayerNorm, x: Array) -> Array:
    weight, bias = (torch.from_numpy(_double(parameter)) for parameter in (norm.weight, norm.bias))
    return F.layer_norm(torch.from_numpy(x.astype(np.float64)), norm.normalized_shape, weight, bias, norm.eps).numpy()


def _double(tensor: Tensor) -> Array:
    return tensor.detach().cpu().double().numpy()
