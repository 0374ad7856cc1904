"""How much each head matters: each head of a kind is switched off alone, many of them in one batched pass.

A head's score is the change in log p(translation) when its z is set to 0 or to its mean: Michel et al. (2019),
section 3.2, with log p in place of BLEU.

    *_, scores = head_scores(translator.model, [(trace.src_ids, trace.next_ids)], "cross")
    shorter = translator.translate([trace.source], interventions=prune([scores], 8))
"""

from collections.abc import Iterator, Mapping, Sequence
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
"""heads per pass: each is one row of the batch, with the whole sentence"""

Mode = Literal["zero", "mean"]
Pair = tuple[Sequence[int], Sequence[int]]
"""token ids of source and target, both with </s> last: `src_ids` and `next_ids` of a Trace"""


@dataclass(frozen=True)
class Question:
    """What is scored: log p of the whole target, of one of its tokens, or how far that is ahead of another token."""

    position: int | None = None
    """of the target token that is scored, given the target before it; None: all of them together"""
    against: int | None = None
    """id of a token whose log p at `position` is subtracted; None: nothing is"""
    token: int | None = None
    """id of the token that is scored at `position`; None: the target's own"""

    def score(self, logits: Tensor, target: Sequence[int]) -> float:
        """In nats, of logits (position, vocabulary) and the ids they should predict."""
        if self.position is None:
            return log_probability(logits, target)
        row = logits[self.position].double().log_softmax(-1)
        token = target[self.position] if self.token is None else self.token
        return (row[token] - (0 if self.against is None else row[self.against])).item()


WHOLE = Question()


def find_token(target: Sequence[int], token: int, against: int | None = None) -> Question | None:
    """The question about `token` where it, or the token it competes with, first stands in `target`; None: nowhere."""
    places = [place for place, written in enumerate(target) if written in (token, against)]
    return Question(places[0], against, token) if places else None


@dataclass(frozen=True)
class HeadScores:
    """What switching off each head does to the score of translations; NaN where not yet run."""

    kind: str
    """encoder_self, decoder_self or cross"""
    mode: Mode
    """what replaces z: zeros, or its mean over positions"""
    log_probabilities: Array
    """(sentences,): the score with all heads, in nats: log p(target | source) if the question names no token"""
    changes: Array
    """(sentences, layers, heads): the same without the head minus it with all heads"""

    @property
    def change(self) -> Array:
        """(layers, heads): `changes`, averaged over the sentences."""
        return self.changes.mean(axis=0)

    @property
    def done(self) -> float:
        """Share of the runs that are done, 0 to 1."""
        return float(np.isfinite(self.changes).mean())


def head_scores(
    model: Transformer,
    pairs: Sequence[Pair],
    kind: str,
    mode: Mode = "zero",
    interventions: Sequence[Intervention] = (),
    rows: int = ROWS,
    question: Question | Sequence[Question] = WHOLE,
) -> Iterator[HeadScores]:
    """Score every head of `kind`; yields after each pass, the whole result last.

    Args:
        model: in evaluation mode.
        pairs: the sentences with their translations, which are teacher-forced.
        kind: encoder_self, decoder_self or cross.
        mode: of `HeadGate`.
        interventions: in effect in every run, also in the one with all heads.
        rows: heads per pass; one more row has all heads.
        question: what is scored, for every pair or one for each.

    Raises:
        ValueError: no pairs, no such kind, or not one question for each pair.
    """
    layers = sum(k == kind for k, _ in model.attentions())
    if not pairs or not layers:
        raise ValueError(f"nothing to score: {len(pairs)} sentences, {layers} layers of {kind!r}")
    if mode not in ("zero", "mean"):
        raise ValueError(f"mode must be zero or mean, got {mode!r}")
    questions = [question] * len(pairs) if isinstance(question, Question) else question
    heads = model.config.n_heads
    changes = np.full((len(pairs), layers, heads), np.nan)
    plain = np.full(len(pairs), np.nan)
    for number, (pair, asked) in enumerate(zip(pairs, questions, strict=True)):
        for first in range(1, 1 + layers * heads, rows):
            # Run 0 has all heads; run 1 + i lacks head i, counted through the layers.
            runs = torch.tensor([0, *range(first, min(first + rows, 1 + layers * heads))])
            plain[number], *without = _score_runs(model, pair, kind, mode, runs, interventions, asked)
            changes[number].flat[first - 1 : first - 1 + len(without)] = np.array(without) - plain[number]
            yield HeadScores(kind, mode, plain.copy(), changes.copy())


def prune(scores: Sequence[HeadScores], k: int) -> tuple[HeadGate, ...]:
    """Closed gates for the k heads with the smallest loss, least important first (Michel et al. 2019, section 4).

    Each head was scored alone, so two heads that can replace each other may both look dispensable.

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
def _score_runs(
    model: Transformer,
    pair: Pair,
    kind: str,
    mode: Mode,
    runs: Tensor,
    interventions: Sequence[Intervention],
    question: Question,
) -> list[float]:
    """The score of each run, in nats; run 0 has all heads, run 1 + i lacks head i.

    Below its own layer a run equals run 0, so it joins the batch there; that saves half of the layers' work.
    """
    heads, device = model.config.n_heads, model.output.weight.device
    src, tgt = (torch.tensor([list(ids)], device=device) for ids in (pair[0], (BOS, *pair[1][:-1])))
    joining = torch.bincount((runs[1:] - 1) // heads, minlength=len(model.attentions())).tolist()
    src_mask = padding_mask(src)
    closed = {
        (k, layer): runs[:, None] - 1 == layer * heads + torch.arange(heads)
        for k, layer in model.attentions()
        if k == kind
    }
    with applied(model, interventions), editing(model, close_heads(model, closed, mode)):
        if kind == "encoder_self":
            x = model.src_embedding(src)
            for layer, joined in zip(model.encoder.layers, joining, strict=False):
                x = layer(torch.cat([x, x[:1].expand(joined, -1, -1)]), src_mask)
            memory = model.memory(model.encoder.final_norm(x))
            logits = model.decode(tgt.expand(len(memory), -1), memory, src_mask)
        else:
            # The decoder's heads do not change the memory: one row of it serves all runs.
            memory, x = model.encode(src, src_mask), model.tgt_embedding(tgt)
            tgt_mask = padding_mask(tgt) & causal_mask(tgt.shape[1], device)
            for layer, joined in zip(model.decoder.layers, joining, strict=False):
                x = layer(torch.cat([x, x[:1].expand(joined, -1, -1)]), memory, tgt_mask, src_mask)
            logits = model.logits(model.output(model.decoder.final_norm(x)))
    # One run at a time: its logits fit the processor's cache, which is ten times as fast.
    return [question.score(row, pair[1]) for row in logits]


def log_probability(logits: Tensor, target: Sequence[int]) -> float:
    """log p of the token ids `target` under logits (position, vocabulary), in nats.

    Each term is computed in the precision of the logits, the sum in double.
    """
    ids = torch.tensor(list(target), device=logits.device)
    return logits.log_softmax(-1).gather(-1, ids[:, None]).double().sum().item()


def close_heads(model: Transformer, closed: Mapping[tuple[str, int], Tensor], mode: str) -> dict[str, Edit]:
    """Edits of z that switch off other heads in each row of the batch.

    Args:
        model: whose hook points the edits are for.
        closed: (kind, layer) -> bool (row, heads), True = this row lacks the head.
        mode: of `HeadGate`.
    """

    def edit(path: str, gates: Tensor) -> Edit:
        return gate_z(path, lambda z: gates[: len(z), :, None, None].to(z.device, z.dtype), mode)

    paths = {address: model.attentions()[address][0] for address in closed}
    return {f"{paths[address]}.z": edit(paths[address], ~heads) for address, heads in closed.items()}
