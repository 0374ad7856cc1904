"""Checks of one Trace against the running model that are cheap enough for every page: the proof strip."""

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from model.analysis.softmax import softmax
from model.cancel import check_cancelled
from model.checkpoints.translator import Translator
from model.hooks import Edit, explicit_path
from model.interventions import Reading, applied
from model.interventions.base import bind
from model.network.encoder_decoder import Transformer
from model.trace import Array, Attention, SubLayer, Trace

CHAIN_TOLERANCE = 5e-5
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


def prove(translator: Translator, trace: Trace) -> tuple[Check, ...]:
    """The three checks of the proof strip: claims 2, 3 and 5."""
    check_cancelled()
    return (hooks_change_nothing(translator, trace), chain_closes(translator, trace), rows_sum_to_one(trace))


@torch.inference_mode()
def hooks_change_nothing(translator: Translator, trace: Trace) -> Check:
    """Claim 2: the logits of a run without recording equal the Trace's, bit for bit."""
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
    """Claim 3: each step of the run equals the same step computed in double precision from the step before it."""
    errors = [relative_error(computed, shown) for computed, shown in _chain(translator, trace)]
    return Check(
        title="The chain closes",
        explanation="From the embeddings to the logits, each step computed again in double precision from the "
        "step before it. The error is the largest difference from the model's own result, relative to the largest "
        "number of its matrix where that is above 1.",
        error=float(np.max(errors)),
        tolerance=CHAIN_TOLERANCE,
    )


def relative_error(computed: Array, shown: Array) -> float:
    """Largest absolute difference, divided by the largest number shown where that is above 1.

    Single precision keeps seven digits, so rounding grows with the numbers.
    """
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
    # In the run's own precision: a small tau would magnify the difference to double precision.
    minus_infinity = attention.scaled.dtype.type(-np.inf)
    masked = changed("masked", np.where(attention.mask, attention.pre_softmax, minus_infinity))
    masked = (masked / attention.temperature[:, None, None]).astype(np.float64)
    yield changed("pattern", softmax(masked)), attention.pattern
    yield changed("z", attention.pattern.astype(np.float64) @ attention.v), attention.z
    yield changed("out", (z @ learned.w_o).sum(axis=0) + learned.b_o), attention.out


def _changed(changes: Changes, path: str, computed: Array, earlier: Mapping[str, Array] | None = None) -> Array:
    """`computed` after the run's interventions at this hook point.

    `earlier`: by path, what an intervention may read of the run (`model.interventions.Reading`).
    """
    # In the run every activation but the positional encoding has a batch dimension.
    batched = not path.endswith(".positional")
    read = {name: torch.tensor(array)[None] for name, array in (earlier or {}).items()}
    activation = torch.tensor(computed)[None] if batched else torch.tensor(computed)
    for edits in changes:
        if edit := edits.get(path):
            edited = bind(edit, read)(activation)
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
    """The norm after a stack with pre-norm, in double precision; with post-norm `x` itself."""
    norm = copy.deepcopy(getattr(model, stack).final_norm).double().cpu()
    return norm(torch.from_numpy(x.astype(np.float64))).numpy()


def _double(tensor: Tensor) -> Array:
    return tensor.detach().cpu().double().numpy()
