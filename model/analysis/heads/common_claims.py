"""Measures behind common claims about attention, on one run."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from model.analysis.distributions import entropy
from model.analysis.sweep import log_probability, sweep
from model.checkpoints.checkpoint import Checkpoint
from model.hooks import editing
from model.interventions import HeadGate, SublayerOff
from model.network.embedding import sinusoids
from model.network.network import EMBEDDINGS
from model.trace import Array, Attention, Trace

STEPS = 20
"""in which the heads are switched off, the least important first"""
SEEDS = (0, 1, 2)
"""of the random weights of an untrained model"""


def evenness(attention: Attention) -> Array:
    """(head, query): entropy of each row, divided by that of equal weights on the keys that it may attend to.

    0: all weight is on one key; 1: it is spread evenly. NaN where a row has no choice.
    """
    choices = attention.mask.sum(axis=-1)
    return np.divide(
        entropy(attention.pattern.astype(np.float64)),
        np.log2(choices, where=choices > 1, out=np.ones(choices.shape)),
        where=choices > 1,
        out=np.full(choices.shape, np.nan),
    )


def mean_evenness(trace: Trace) -> float:
    """The mean of `evenness` over all rows of all heads of all layers; NaN where no row has a choice."""
    rows = np.concatenate([evenness(attention).ravel() for attention in trace.attentions.values()])
    return float(np.nanmean(rows)) if np.isfinite(rows).any() else float("nan")


def row_evenness(trace: Trace, stream: str) -> Array:
    """(query,): the mean of `evenness` over all heads of a stream's self-attention; NaN where there is no choice."""
    rows = np.concatenate([evenness(each) for (kind, _), each in trace.attentions.items() if kind == f"{stream}_self"])
    heads = np.isfinite(rows).sum(axis=0)
    return np.divide(np.nansum(rows, axis=0), heads, where=heads > 0, out=np.full(len(heads), np.nan))


@dataclass(frozen=True)
class Removal:
    """What switching heads off does to log p of the text, in nats per token."""

    alone: Array
    """(head,): each head off alone, in the order of the trace's kinds, layers and heads"""
    counts: Array
    """(step,): how many heads are off together, the least important first; the first step is none"""
    together: Array
    """(step,): the change with so many off; NaN where not yet run"""

    def removable(self, most: float) -> int:
        """How many heads can be off together, in this order, before log p falls by more than `most` nats per token."""
        fallen = np.flatnonzero(self.together < -most)
        return int(self.counts[fallen[0] - 1] if len(fallen) else self.counts[-1])


def remove_heads(checkpoint: Checkpoint, trace: Trace) -> Iterator[tuple[float, Removal]]:
    """Switch off each head alone, and then more and more of them, the least important first.

    Michel et al. (2019), sections 3 and 4, with log p of the text in place of BLEU.

    Yields:
        the share that is done, and what is known so far; the last one is whole.
    """
    gates = [
        HeadGate(0.0, kind=kind.name, layer=layer, head=head)
        for kind in trace.kinds
        for layer in kind.layers
        for head in range(kind.heads)
    ]
    counts = np.unique(np.linspace(0, len(gates), STEPS + 1).astype(int))
    alone, together = np.full(len(gates), np.nan), np.full(len(counts), np.nan)
    together[0] = 0.0
    runs = len(gates) + len(counts) - 1
    for number, logits in enumerate(sweep(checkpoint, trace, [(gate,) for gate in gates])):
        alone[number] = _change(trace, logits)
        yield (number + 1) / runs, Removal(alone, counts, together)
    ranked = [gates[i] for i in np.argsort(-alone, kind="stable")]
    for step, logits in enumerate(sweep(checkpoint, trace, [ranked[:count] for count in counts[1:]]), start=1):
        together[step] = _change(trace, logits)
        yield (len(gates) + step) / runs, Removal(alone, counts, together)


def remove_sublayers(checkpoint: Checkpoint, trace: Trace) -> Iterator[tuple[float, dict[tuple[str, int, str], float]]]:
    """Switch off each sub-layer alone: what it adds to the residual stream becomes 0.

    Yields:
        the share that is done, and the change of log p in nats per token by (stack, layer, name).
    """
    places = [(each.stack, each.layer, each.name) for each in trace.sublayers]
    found = {}
    for place, logits in zip(places, sweep(checkpoint, trace, [(SublayerOff(*each),) for each in places]), strict=True):
        found[place] = _change(trace, logits)
        yield len(found) / len(places), dict(found)


def _change(trace: Trace, logits: Array) -> float:
    """How far log p of the text is under these logits from that of the run, in nats per token."""
    return (log_probability(logits, trace.next_ids) - trace.log_probability) / len(trace.next_ids)


def untrained_evenness(checkpoint: Checkpoint, trace: Trace) -> Array:
    """(seed,): `mean_evenness` of models of this shape with random weights, on the same tokens.

    The weights are those with which training begins.
    """
    found = []
    for seed in SEEDS:
        untrained = checkpoint.model.untrained(torch.Generator().manual_seed(seed))
        found.append(mean_evenness(replace(checkpoint, model=untrained).rerun(trace, ())))
    return np.array(found)


def shift_positions(checkpoint: Checkpoint, trace: Trace, shifts: Sequence[int]) -> Mapping[int, float]:
    """Move every token of every stack to a later position: the change of log p in nats per token, by shift.

    Only for models that add sinusoids (paper, section 3.5): those of positions beyond `max_len` are computed here.
    """
    width = checkpoint.model.config.d_model
    found = {}
    for shift in shifts:
        edits = {
            f"{EMBEDDINGS[name]}.positional": lambda old, shift=shift: sinusoids(len(old) + shift, width)[shift:].to(
                old
            )
            for name in trace.streams
        }
        with editing(checkpoint.model, edits):
            after = checkpoint.rerun(trace, trace.interventions)
        found[shift] = (after.log_probability - trace.log_probability) / len(trace.next_ids)
    return found
