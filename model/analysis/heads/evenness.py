"""How evenly a row of attention is spread: from one key to equal weights on all."""

from dataclasses import replace

import numpy as np
import torch

from model.analysis.distributions import entropy, ratio
from model.checkpoints.checkpoint import Checkpoint
from model.trace import Array, Attention, Trace

SEEDS = (0, 1, 2)
"""of the random weights of an untrained model"""


def evenness(attention: Attention) -> Array:
    """(head, query): entropy of each row, divided by that of equal weights on the keys that it may attend to.

    0: all weight is on one key; 1: it is spread evenly. NaN where a row has no choice.
    """
    return ratio(entropy(attention.pattern), np.log2(attention.mask.sum(axis=-1).clip(min=1)), np.nan)


def mean_evenness(trace: Trace) -> float:
    """The mean of `evenness` over all rows of all heads of all layers; NaN where no row has a choice."""
    rows = np.concatenate([evenness(attention).ravel() for attention in trace.attentions.values()])
    return float(np.nanmean(rows)) if np.isfinite(rows).any() else float("nan")


def row_evenness(trace: Trace, stream: str) -> Array:
    """(query,): the mean of `evenness` over all heads of a stream's self-attention; NaN where there is no choice."""
    rows = np.concatenate([evenness(each) for (kind, _), each in trace.attentions.items() if kind == f"{stream}_self"])
    return ratio(np.nansum(rows, axis=0), np.isfinite(rows).sum(axis=0), np.nan)


def untrained_evenness(checkpoint: Checkpoint, trace: Trace) -> Array:
    """(seed,): `mean_evenness` of models of this shape with random weights, on the same tokens.

    The weights are those with which training begins.
    """
    found = []
    for seed in SEEDS:
        untrained = checkpoint.model.untrained(torch.Generator().manual_seed(seed))
        found.append(mean_evenness(replace(checkpoint, model=untrained).rerun(trace, ())))
    return np.array(found)
