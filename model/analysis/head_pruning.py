"""Many heads switched off together: what happens to a translation as heads go, the least important first.

Michel et al. (2019), section 4, figure 3; Voita et al. (2019), section 6.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from model.analysis.head_importance import Pair, close_heads, log_probability
from model.checkpoints.translator import Translator
from model.hooks import editing
from model.interventions import HeadGate, Intervention, applied
from model.network.config import BOS, EOS, PAD, UNK
from model.network.encoder_decoder import Transformer
from model.network.masks import padding_mask
from model.trace import Array

ROWS = 16
"""values of k per pass: each is one row of the batch, with the whole sentence"""


@dataclass(frozen=True)
class PruningCurve:
    """The effect of switching off the first k heads of a list, for k = 0, 1, ..., all; NaN where not yet run."""

    log_probabilities: Array
    """(k,): log p(translation | source) without the first k heads, in nats"""
    same: Array
    """(k,): 1 where greedy decoding without these heads gives the same translation as with all heads, else 0"""

    @property
    def done(self) -> float:
        """Share of the runs that are done, 0 to 1."""
        return float(np.isfinite(self.same).mean())


def encode_pair(translator: Translator, source: str, translation: str) -> Pair:
    """Both texts as token ids with </s> last, truncated to the model's limit."""
    ids = (translator.tokenizer.encode(text)[: translator.token_limit - 1] for text in (source, translation))
    src, tgt = ((*side, EOS) for side in ids)
    return src, tgt


def pruning_curve(
    model: Transformer,
    pair: Pair,
    greedy_ids: Sequence[int],
    gates: Sequence[HeadGate],
    interventions: Sequence[Intervention] = (),
) -> Iterator[PruningCurve]:
    """Switch off the first k of `gates` for every k; yields after each pass, the whole curve last.

    Greedy decoding gives the same translation if and only if each of its tokens is the most probable one after those
    before it, so one teacher-forced pass is enough.

    Args:
        model: in evaluation mode.
        pair: the sentence, and the translation whose log-probability is measured.
        greedy_ids: the greedy translation with all heads, </s> last.
        gates: closed heads of one mode, the least important first, as `prune` orders them.
        interventions: in effect in every run.
    """
    curve = PruningCurve(np.full(1 + len(gates), np.nan), np.full(1 + len(gates), np.nan))
    for first in range(0, 1 + len(gates), ROWS):
        counts = torch.arange(first, min(first + ROWS, 1 + len(gates)))
        here = slice(first, first + len(counts))
        logits = _pruned_logits(model, pair, gates, counts, interventions)
        curve.log_probabilities[here] = [log_probability(row, pair[1]) for row in logits]
        if tuple(greedy_ids) != tuple(pair[1]):
            logits = _pruned_logits(model, (pair[0], greedy_ids), gates, counts, interventions)
        curve.same[here] = _decodes_to(logits, greedy_ids).cpu().numpy()
        yield PruningCurve(curve.log_probabilities.copy(), curve.same.copy())


def _decodes_to(logits: Tensor, ids: Sequence[int]) -> Tensor:
    """bool (run,): whether each of `ids` is the most probable token that a translation may contain."""
    forbidden = torch.tensor([PAD, UNK, BOS], device=logits.device)
    best = logits.float().index_fill(-1, forbidden, -torch.inf).argmax(-1)
    return (best == torch.tensor(list(ids), device=logits.device)).all(-1)


@torch.inference_mode()
def _pruned_logits(
    model: Transformer, pair: Pair, gates: Sequence[HeadGate], counts: Tensor, interventions: Sequence[Intervention]
) -> Tensor:
    """(run, position, vocabulary): logits of run i, without the first counts[i] heads."""
    device = model.output.weight.device
    src, tgt = (torch.tensor([list(ids)], device=device) for ids in (pair[0], (BOS, *pair[1][:-1])))
    closed: dict[tuple[str, int], Tensor] = {}
    for rank, gate in enumerate(gates):
        heads = closed.setdefault(
            (gate.kind, gate.layer), torch.zeros(len(counts), model.config.n_heads, dtype=torch.bool)
        )
        heads[counts > rank, gate.head] = True
    edits = close_heads(model, closed, gates[0].mode if gates else "zero")
    in_encoder = any(kind == "encoder_self" for kind, _ in closed)
    src_mask = padding_mask(src)
    with applied(model, interventions), editing(model, edits):
        # Without a closed head in the encoder, one row of memory serves all runs.
        memory = model.encode(src.expand(len(counts), -1) if in_encoder else src, src_mask)
        return model.decode(tgt.expand(len(counts), -1), memory, src_mask)
