"""How much each head matters: every head of a kind switched off, one at a time, in one batched pass.

A head's score is the change in the log-probability of a translation when its z is set to 0 (or to its mean):
Michel et al. (2019), section 3.2, with log p in place of BLEU. The less it falls, the less the head matters.

    *_, scores = head_scores(translator.model, [(trace.src_ids, trace.next_ids)], "cross")
    shorter = translator.translate([trace.source], interventions=prune([scores], 8))
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from model.hooks import Edit, editing
from model.interventions import HeadGate, Intervention, applied
from model.interventions.attention import gate_z
from model.network.config import BOS
from model.network.encoder_decoder import Transformer
from model.network.masks import causal_mask, padding_mask
from model.trace import Array

ROWS = 64
"""heads switched off in one pass: batch rows, each with the whole sentence"""

Mode = Literal["zero", "mean"]
Pair = tuple[Sequence[int], Sequence[int]]
"""source and target token ids, both with </s> last: a Trace's src_ids and next_ids"""


@dataclass(frozen=True)
class HeadScores:
    """What switching off each head does to the log-probabilities of translations, as far as it is known."""

    kind: str
    """encoder_self, decoder_self or cross"""
    mode: Mode
    """what is put in place of z: nothing, or its mean"""
    log_probabilities: Array
    """(sentences,): log p(target | source) with all heads, natural logarithm; NaN where not yet run"""
    changes: Array
    """(sentences, layers, heads): log p without the head minus log p with it; NaN where not yet run"""

    @property
    def change(self) -> Array:
        """(layers, heads): mean of `changes` over the sentences."""
        return self.changes.mean(axis=0)

    @property
    def done(self) -> float:
        """Share of the runs that are finished, 0 to 1."""
        return float(np.isfinite(self.changes).mean())


def head_scores(
    model: Transformer,
    pairs: Sequence[Pair],
    kind: str,
    mode: Mode = "zero",
    interventions: Sequence[Intervention] = (),
    rows: int = ROWS,
) -> Iterator[HeadScores]:
    """Score every head of `kind`; yields after each pass, the whole result last.

    Args:
        model: in evaluation mode.
        pairs: each sentence and its translation, as token ids; teacher-forced.
        kind: encoder_self, decoder_self or cross.
        mode: "zero", or "mean" as `HeadGate`'s.
        interventions: what else is changed in the model, with all heads and without.
        rows: heads in one pass, beside the run that has them all.

    Raises:
        ValueError: no pairs, or no such kind.
    """
    layers = sum(k == kind for k, _ in model.attentions())
    if not pairs or not layers:
        raise ValueError(f"nothing to score: {len(pairs)} sentences, {layers} layers of {kind!r}")
    if mode not in ("zero", "mean"):
        raise ValueError(f"mode must be zero or mean, got {mode!r}")
    heads = model.config.n_heads
    changes = np.full((len(pairs), layers, heads), np.nan)
    plain = np.full(len(pairs), np.nan)
    for number, pair in enumerate(pairs):
        for first in range(1, 1 + layers * heads, rows):
            # Run 0 has all its heads; run 1 + i lacks head i, counted through the layers.
            runs = torch.tensor([0, *range(first, min(first + rows, 1 + layers * heads))])
            plain[number], *found = _log_probabilities(model, pair, kind, mode, runs, interventions)
            changes[number].flat[first - 1 : first - 1 + len(found)] = np.array(found) - plain[number]
            yield HeadScores(kind, mode, plain.copy(), changes.copy())


def prune(scores: Sequence[HeadScores], k: int) -> tuple[HeadGate, ...]:
    """Switch off the k heads whose loss costs least, of all kinds scored (Michel et al. 2019, section 4).

    Scored one at a time: two heads that stand in for each other may both look dispensable.

    Raises:
        ValueError: k is below 0 or above the number of heads scored.
    """
    ranked = [
        (-change, number, int(layer), int(head))
        for number, of_kind in enumerate(scores)
        for (layer, head), change in np.ndenumerate(of_kind.change)
    ]
    if not 0 <= k <= len(ranked):
        raise ValueError(f"k must lie between 0 and {len(ranked)}, the number of heads scored, got {k}")
    return tuple(
        HeadGate(0.0, kind=scores[number].kind, layer=layer, head=head, mode=scores[number].mode)
        for _, number, layer, head in sorted(ranked)[:k]
    )


@torch.inference_mode()
def _log_probabilities(
    model: Transformer, pair: Pair, kind: str, mode: Mode, runs: Tensor, interventions: Sequence[Intervention]
) -> list[float]:
    """log p(target | source) of each run, natural logarithm; `runs` begins with 0, the run with all heads.

    Up to its own layer a run is run 0: it joins the batch there, so half of the layers' work is saved.
    """
    device = model.output.weight.device
    src, tgt = (torch.tensor([list(ids)], device=device) for ids in (pair[0], (BOS, *pair[1][:-1])))
    joining = torch.bincount((runs[1:] - 1) // model.config.n_heads, minlength=len(model.attentions())).tolist()
    src_mask = padding_mask(src)
    with applied(model, interventions), editing(model, _gates(model, kind, mode, runs)):
        if kind == "encoder_self":
            x = model.src_embedding(src)
            for layer, joined in zip(model.encoder.layers, joining, strict=False):
                x = layer(torch.cat([x, x[:1].expand(joined, -1, -1)]), src_mask)
            memory = model.memory(model.encoder.final_norm(x))
            logits = model.decode(tgt.expand(len(memory), -1), memory, src_mask)
        else:
            # The decoder's heads leave the memory as it is: one row of it serves all runs.
            memory, x = model.encode(src, src_mask), model.tgt_embedding(tgt)
            tgt_mask = padding_mask(tgt) & causal_mask(tgt.shape[1], device)
            for layer, joined in zip(model.decoder.layers, joining, strict=False):
                x = layer(torch.cat([x, x[:1].expand(joined, -1, -1)]), memory, tgt_mask, src_mask)
            logits = model.logits(model.output(model.decoder.final_norm(x)))
    # A run at a time: its logits fit the processor's cache, which makes this ten times as fast.
    following = torch.tensor(list(pair[1]), device=device)
    return [log_probability(row, following) for row in logits]


def log_probability(logits: Tensor, following: Tensor) -> float:
    """log p of the tokens `following` (position,), given logits (position, vocabulary); natural logarithm.

    Each token's is taken in the logits' own precision, their sum in double.
    """
    return logits.log_softmax(-1).gather(-1, following[:, None]).double().sum().item()


def _gates(model: Transformer, kind: str, mode: Mode, runs: Tensor) -> dict[str, Edit]:
    """Edits of z: row i of the batch lacks head runs[i] - 1, counted through the layers; -1 is none."""
    heads = model.config.n_heads

    def edit(layer: int, path: str) -> Edit:
        closed = (runs[:, None] - 1 == layer * heads + torch.arange(heads))[:, :, None, None]
        return gate_z(path, lambda z: (~closed[: len(z)]).to(z.device, z.dtype), mode)

    paths = {layer: path for (k, layer), (path, _) in model.attentions().items() if k == kind}
    return {f"{path}.z": edit(layer, path) for layer, path in paths.items()}
