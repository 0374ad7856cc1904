"""How much each head matters: each head of a kind is switched off alone, and then more and more of them together.

A head's score is the change in log p of the text when its z is set to 0 or to its mean: Michel et al. (2019), section
3.2, with log p in place of BLEU; heads that are switched off together: their section 4, and Voita et al. (2019),
section 6.

    *_, (_, scores) = head_scores(opened, [trace], "cross")
    shorter = opened.translate([trace.source], interventions=prune([scores], 8))
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from model.analysis.sweep import log_probability, sweep
from model.checkpoints.checkpoint import Checkpoint
from model.interventions import HeadGate
from model.trace import Array, Trace, log_probabilities

MOST_STEPS = 48
"""numbers of heads that are switched off together, besides none"""

Mode = Literal["zero", "mean"]


@dataclass(frozen=True)
class ScoredText:
    """What is scored: log p of the whole text, of one of its tokens, or how far that is ahead of another token."""

    position: int | None = None
    """of the token that is scored, given those before it; None: all of them together"""
    against: int | None = None
    """id of a token whose log p at `position` is subtracted; None: nothing is"""
    token: int | None = None
    """id of the token that is scored at `position`; None: the text's own"""

    def score(self, logits: Array, ids: Sequence[int]) -> float:
        """In nats, of logits (row, vocabulary) and the ids they should predict."""
        if self.position is None:
            return log_probability(logits, ids)
        row = log_probabilities(logits[self.position])
        token = ids[self.position] if self.token is None else self.token
        return float(row[token] - (0 if self.against is None else row[self.against]))


WHOLE = ScoredText()


def find_token(ids: Sequence[int], token: int, against: int | None = None) -> ScoredText | None:
    """The question about `token` where it, or the token it competes with, first stands in `ids`; None: nowhere."""
    places = [place for place, written in enumerate(ids) if written in (token, against)]
    return ScoredText(places[0], against, token) if places else None


@dataclass(frozen=True)
class HeadScores:
    """What switching off each head does to the score of texts; NaN where not yet run, or where there is no head."""

    kind: str
    """encoder_self, decoder_self or cross"""
    layers: tuple[int, ...]
    """that have this kind of attention"""
    mode: Mode
    """what replaces z: zeros, or its mean over positions"""
    log_probabilities: Array
    """(texts,): the score with all heads, in nats: log p of the text if the question names no token"""
    changes: Array
    """(texts, layers, heads): the same without the head minus it with all heads"""

    @property
    def change(self) -> Array:
        """(layers, heads): `changes`, averaged over the texts."""
        return self.changes.mean(axis=0)


def head_scores(
    opened: Checkpoint, traces: Sequence[Trace], kind: str, mode: Mode = "zero", questions: Sequence[ScoredText] = ()
) -> Iterator[tuple[float, HeadScores]]:
    """Score every head of `kind`; yields the share that is done, and what is known so far, the whole last.

    The texts are teacher-forced; their changes act in every run, also in the one with all heads. Without questions, log
    p of all of each text is scored.

    Raises:
        ValueError: no texts, no such kind, no such mode, or not one question for each text.
    """
    attentions = {layer: module for (k, layer), (_, module) in opened.model.attentions().items() if k == kind}
    if not traces or not attentions:
        raise ValueError(f"nothing to score: {len(traces)} texts, {len(attentions)} layers of {kind!r}")
    layers = next(each for each in opened.kinds if each.name == kind).layers
    heads = [(row, head) for row, layer in enumerate(layers) for head in range(attentions[layer].n_heads)]
    gates = [(HeadGate(0.0, kind, layers[row], head, mode),) for row, head in heads]
    plain = np.full(len(traces), np.nan)
    changes = np.full((len(traces), len(layers), 1 + max(head for _, head in heads)), np.nan)
    done, runs = 0, len(traces) * (1 + len(heads))
    for number, (trace, question) in enumerate(zip(traces, questions or [WHOLE] * len(traces), strict=True)):
        for place, logits in zip([None, *heads], sweep(opened, trace, [(), *gates]), strict=True):
            score = question.score(logits, trace.next_ids)
            if place is None:
                plain[number] = score
            else:
                changes[number][place] = score - plain[number]
            done += 1
            yield done / runs, HeadScores(kind, layers, mode, plain, changes)


def prune(scores: Sequence[HeadScores], k: int) -> tuple[HeadGate, ...]:
    """Closed gates for the k heads with the smallest loss, least important first (Michel et al. 2019, section 4).

    Each head was scored alone, so two heads that can replace each other may both look dispensable.

    Raises:
        ValueError: k is below 0 or above the number of heads scored.
    """
    ranked = [
        (-change, number, row, head)
        for number, of_kind in enumerate(scores)
        for (row, head), change in np.ndenumerate(of_kind.change)
        if np.isfinite(change)
    ]
    if not 0 <= k <= len(ranked):
        raise ValueError(f"k must lie between 0 and {len(ranked)}, the number of heads scored, got {k}")
    return tuple(
        HeadGate(0.0, scores[number].kind, scores[number].layers[row], head, scores[number].mode)
        for _, number, row, head in sorted(ranked)[:k]
    )


@dataclass(frozen=True)
class PruningCurve:
    """The effect of switching off the first heads of a list together; NaN where not yet run."""

    counts: Array
    """(step,): how many heads are off; none at the first step, all at the last"""
    log_probabilities: Array
    """(step,): log p of the text without these heads, in nats"""
    same: Array
    """(step,): 1 where greedy decoding without these heads writes the same text as with all heads, else 0"""


def pruning_curve(
    opened: Checkpoint, trace: Trace, greedy: Trace, gates: Sequence[HeadGate]
) -> Iterator[tuple[float, PruningCurve]]:
    """Switch off more and more of `gates`, closed heads as `prune` orders them: every number of them, or MOST_STEPS
    numbers where there are more. Yields the share that is done, and what is known so far, the whole last.

    `greedy` is what the model writes with all heads; of an encoder alone, the same run as `trace`. Greedy decoding
    writes the same text if and only if each of its tokens is the most probable one after those before it, so one
    teacher-forced run is enough. The changes of the trace act in every run.
    """
    counts = np.unique(np.linspace(0, len(gates), min(len(gates), MOST_STEPS) + 1).astype(int))
    changes = [gates[:count] for count in counts]
    curve = PruningCurve(counts, *(np.full(len(counts), np.nan) for _ in range(2)))
    texts = [trace] if greedy.next_ids == trace.next_ids else [trace, greedy]
    first: Array = np.empty(0)
    for step, logits in enumerate(zip(*(sweep(opened, text, changes) for text in texts), strict=True)):
        best = _most_probable(opened, logits[-1])[greedy.first_written :]
        first = best if step == 0 else first
        curve.log_probabilities[step] = log_probability(logits[0], trace.next_ids)
        curve.same[step] = np.array_equal(best, first)
        yield (step + 1) / len(counts), curve


def _most_probable(opened: Checkpoint, logits: Array) -> Array:
    """(row,): the most probable tokens that the model may write."""
    allowed = logits.copy()
    allowed[:, opened.model.barred] = -np.inf
    return allowed.argmax(axis=-1)
