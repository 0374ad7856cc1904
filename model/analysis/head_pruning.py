"""Many heads switched off together: what is left of a translation as the least important ones go, one by one.

Michel et al. (2019), section 4, figure 3; Voita et al. (2019), section 6.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from model.analysis.head_importance import Pair, log_probability
from model.checkpoints.translator import Translator
from model.hooks import Edit, editing
from model.interventions import HeadGate, Intervention, applied
from model.interventions.attention import gate_z
from model.network.config import BOS, EOS, PAD, UNK
from model.network.encoder_decoder import Transformer
from model.network.masks import padding_mask
from model.trace import Array

ROWS = 16
"""numbers of heads tried in one pass: batch rows, each with the whole sentence"""


@dataclass(frozen=True)
class PruningCurve:
    """What switching off the first k of a row of heads does, k = 0, 1, ..., all of them; as far as it is known."""

    log_probabilities: Array
    """(k,): log p(translation | source) without the first k heads, natural logarithm; NaN where not yet run"""
    same: Array
    """(k,): 1 where greedy decoding without these heads still gives the greedy translation of the model, else 0;
    NaN where not yet run"""

    @property
    def done(self) -> float:
        """Share of the runs that are finished, 0 to 1."""
        return float(np.isfinite(self.same).mean())


def encode_pair(translator: Translator, source: str, translation: str) -> Pair:
    """Both as token ids with </s> last, cut to what the model holds."""
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

    Greedy decoding gives a translation again if and only if each of its tokens is the most probable one after
    those before it: one teacher-forced pass tells, without decoding.

    Args:
        model: in evaluation mode.
        pair: the sentence and the translation whose log-probability is followed.
        greedy_ids: the greedy translation with all heads, </s> last.
        gates: closed heads, the least important first, as `prune` ranks them.
        interventions: what else is changed in the model.
    """
    found = PruningCurve(np.full(1 + len(gates), np.nan), np.full(1 + len(gates), np.nan))
    for first in range(0, 1 + len(gates), ROWS):
        counts = torch.arange(first, min(first + ROWS, 1 + len(gates)))
        here = slice(first, first + len(counts))
        logits = _pruned_logits(model, pair, gates, counts, interventions)
        following = torch.tensor(list(pair[1]), device=logits.device)
        found.log_probabilities[here] = [log_probability(row, following) for row in logits]
        if tuple(greedy_ids) != tuple(pair[1]):
            logits = _pruned_logits(model, (pair[0], greedy_ids), gates, counts, interventions)
        found.same[here] = _decodes_to(logits, greedy_ids).cpu().numpy()
        yield PruningCurve(found.log_probabilities.copy(), found.same.copy())


def _decodes_to(logits: Tensor, ids: Sequence[int]) -> Tensor:
    """(run,): whether each of `ids` is the most probable of the tokens that a translation may hold."""
    forbidden = torch.tensor([PAD, UNK, BOS], device=logits.device)
    best = logits.float().index_fill(-1, forbidden, -torch.inf).argmax(-1)
    return (best == torch.tensor(list(ids), device=logits.device)).all(-1)


@torch.inference_mode()
def _pruned_logits(
    model: Transformer, pair: Pair, gates: Sequence[HeadGate], counts: Tensor, interventions: Sequence[Intervention]
) -> Tensor:
    """(run, position, vocabulary): logits without the first counts[i] heads in run i."""
    device = model.output.weight.device
    src, tgt = (torch.tensor([list(ids)], device=device) for ids in (pair[0], (BOS, *pair[1][:-1])))
    src_mask = padding_mask(src)
    with applied(model, interventions), editing(model, _gates(model, gates, counts)):
        # Where no head of the encoder is closed, this stays one row that serves all runs.
        memory = model.encode(src.expand(len(counts), -1) if _encoder(gates) else src, src_mask)
        return model.decode(tgt.expand(len(counts), -1), memory, src_mask)


def _encoder(gates: Sequence[HeadGate]) -> bool:
    return any(gate.kind == "encoder_self" for gate in gates)


def _gates(model: Transformer, gates: Sequence[HeadGate], counts: Tensor) -> Mapping[str, Edit]:
    """Edits of z: row i of the batch lacks the heads of gates[:counts[i]]."""
    attentions, closed = model.attentions(), {}
    for rank, gate in enumerate(gates):
        path, _ = attentions[gate.kind, gate.layer]
        rows = closed.setdefault((path, gate.mode), torch.zeros(len(counts), model.config.n_heads, 1, 1))
        rows[counts > rank, gate.head] = 1
    return {f"{path}.z": _edit(path, rows, mode) for (path, mode), rows in closed.items()}


def _edit(path: str, closed: Tensor, mode: str) -> Edit:
    return gate_z(path, lambda z: 1 - closed.to(z.device, z.dtype), mode)
