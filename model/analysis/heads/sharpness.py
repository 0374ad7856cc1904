"""How sharply a model attends: evenness of its rows, rows on a single key, and the largest score."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from model.analysis.distributions import ratio
from model.analysis.heads.evenness import evenness
from model.trace import Array, Attention, Trace

ONE_KEY = 0.99
"""A row whose largest weight is above this has chosen one key."""
CHOICES = 3
"""Rows that may attend to fewer keys are left out: of two keys, one is often the row itself."""
COLLAPSED = 0.1
"""Mean evenness below which heads look at single tokens: a training warns."""
EVEN = 0.3
"""Mean evenness from which on the heads of a model can be read; every checkpoint that comes with the app has it."""
ON_ONE_KEY = 0.25
"""The share of rows on one key up to which they can; likewise."""


@dataclass(frozen=True)
class Sharpness:
    """How sharply the heads of one attention attend, over the rows of all sentences that may attend to three keys or
    more.

    Zhai et al. (2023) call the state in which evenness is close to 0 entropy collapse: scores have grown until each
    softmax is an argmax.
    """

    kind: str
    layer: int
    evenness: Array
    """(head,): mean entropy of a row, divided by that of equal weights on its keys; NaN without rows"""
    on_one_key: Array
    """(head,): share of the rows whose largest weight is above `ONE_KEY`; NaN without rows"""
    largest: Array
    """(head,): the largest |q·k / sqrt(d_k)| that a row may use"""


def measure_sharpness(traces: Iterable[Trace]) -> tuple[Sharpness, ...]:
    """How sharply each attention of a model attends on these runs of it, in the order of its kinds and layers."""
    found: dict[tuple[str, int], list[tuple[Array, Array, Array]]] = {}
    for trace in traces:
        for place, attention in trace.attentions.items():
            found.setdefault(place, []).append(_rows(attention))
    return tuple(
        Sharpness(kind, layer, _mean(parts, 0), _mean(parts, 1), np.max([largest for _, _, largest in parts], axis=0))
        for (kind, layer), parts in found.items()
    )


def mean_sharpness(places: Iterable[Sharpness]) -> tuple[float, float, float]:
    """Evenness and share of rows on one key, each the mean over all heads, and the largest score of all."""
    places = list(places)
    heads = [np.concatenate([getattr(place, name) for place in places]) for name in ("evenness", "on_one_key")]
    means = [float(np.nanmean(values)) if np.isfinite(values).any() else float("nan") for values in heads]
    return means[0], means[1], float(max(place.largest.max() for place in places))


def _rows(attention: Attention) -> tuple[Array, Array, Array]:
    """(head, row) evenness and whether the row is on one key, NaN where it has no choice; (head,) largest score."""
    counted = attention.mask.sum(axis=-1) >= CHOICES
    even = np.where(counted, evenness(attention), np.nan)
    one = np.where(counted, attention.pattern.max(axis=-1) > ONE_KEY, np.nan)
    return even, one, np.abs(np.where(attention.mask, attention.scaled, 0.0)).max(axis=(-2, -1))


def _mean(parts: list[tuple[Array, Array, Array]], number: int) -> Array:
    """(head,): the mean over the rows of all sentences, each row counted once; NaN without rows."""
    rows = np.concatenate([part[number] for part in parts], axis=-1)
    return ratio(np.nansum(rows, axis=-1), np.isfinite(rows).sum(axis=-1), np.nan)
