"""What a person may guess before seeing it, read off one run: the highest of some numbers, and counts of cells."""

import numpy as np

from model.analysis.softmax import softmax_at
from model.trace import Array


def highest(values: Array) -> tuple[tuple[int, ...], float]:
    """Every position of the largest of (n,) numbers, and that number."""
    most = values.max()
    return tuple(map(int, np.flatnonzero(values == most))), float(most)


def rows_with_choice(mask: Array) -> tuple[int, ...]:
    """The queries of a bool (query, key) mask that may look at more than one key."""
    return tuple(map(int, np.flatnonzero(mask.sum(axis=-1) > 1)))


def heaviest_hidden(pattern: Array, mask: Array) -> float:
    """The largest weight of any masked cell, of (query, key) weights; 0 where none is masked."""
    return float(pattern[~mask].max(initial=0.0))


def halfway(scaled: Array, mask: Array, tau: float) -> tuple[float, float, float]:
    """A row's largest weight at tau = 1 and at `tau`, and what to hold the second against.

    softmax(x / tau) is softmax(x) to the power of 1 / tau, shared out again. So where the largest weight goes depends
    on the others: it goes furthest apart from where all others are equal to where all lie on one key. The third number,
    rounded to three digits, is halfway between these two.

    Args:
        scaled: (key,) scores / sqrt(d_k).
        mask: bool (key,), True = may look, at two keys or more.
        tau: another temperature than 1.
    """
    plain = float(softmax_at(scaled, mask, 1.0).max())
    others = int(mask.sum()) - 1
    ends = [plain ** (1 / tau) / (plain ** (1 / tau) + n * ((1 - plain) / n) ** (1 / tau)) for n in (1, others)]
    return plain, float(softmax_at(scaled, mask, tau).max()), round(sum(ends) / 2, 3)
