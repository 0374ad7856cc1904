"""What switching heads and sub-layers off does to log p of a text: each alone, and more and more heads together."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from model.analysis.sweep import log_probability, sweep
from model.checkpoints.checkpoint import Checkpoint
from model.interventions import HeadGate, SublayerOff
from model.trace import Array, Trace

STEPS = 20
"""in which the heads are switched off, the least important first"""


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
    """Switch off each head alone, and then more and more of them, the least important first; yields the share that is
    done, and what is known so far, the whole last.

    Michel et al. (2019), sections 3 and 4, with log p of the text in place of BLEU.
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
    """Switch off each sub-layer alone: what it adds to the residual stream becomes 0. Yields the share that is done,
    and the change of log p in nats per token by (stack, layer, name)."""
    places = [(each.stack, each.layer, each.name) for each in trace.sublayers]
    found = {}
    for place, logits in zip(places, sweep(checkpoint, trace, [(SublayerOff(*each),) for each in places]), strict=True):
        found[place] = _change(trace, logits)
        yield len(found) / len(places), dict(found)


def _change(trace: Trace, logits: Array) -> float:
    """How far log p of the text is under these logits from that of the run, in nats per token."""
    return (log_probability(logits, trace.next_ids) - trace.log_probability) / len(trace.next_ids)
