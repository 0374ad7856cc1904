"""The learning rate over time (paper, section 5.3, equation 3), and reading it back from a log."""

import math
from dataclasses import dataclass

import numpy as np

from model.trace import Array


def noam(step: int, d_model: int, warmup: int, factor: float = 1.0, rise: bool = True) -> float:
    """factor * d_model^-0.5 * min(step^-0.5, step * warmup^-1.5); steps count from 1.

    A warm-up of 0 leaves only the decay, factor * d_model^-0.5 * step^-0.5, which begins sqrt(warmup) times as high.
    Without `rise` the rate is at its peak from step 1 to step `warmup`, and the same as with it from there on.

    Raises:
        ValueError: `step` is below 1 or `warmup` below 0.
    """
    if step < 1 or warmup < 0:
        raise ValueError(f"step must be at least 1 and warmup at least 0, got {step} and {warmup}")
    rising = (step if rise else warmup) * warmup**-1.5 if warmup else math.inf
    return factor * d_model**-0.5 * min(step**-0.5, rising)


def cooldown(step: int, steps: int, length: int) -> float:
    """Multiplier of the rate: 1, then over the last `length` of `steps` steps linearly down to 0.

    Not in the paper, which averages checkpoints instead; both settle the weights (Hägele et al. 2024).
    """
    return min(1.0, (steps - step) / length) if length else 1.0


ROUNDING = 1e-4
"""Relative tolerance: a log keeps six digits of a rate."""


@dataclass(frozen=True)
class FittedSchedule:
    """Equation 3 as fitted to the logged rates of a run, and where the log departs from it."""

    warmup: float
    """steps"""
    factor: float
    """multiplies equation 3; 1 in the paper"""
    n_followed: int
    """logged rates that follow the equation, from the first on"""
    error: float
    """largest relative difference between the equation and those rates"""
    lowered_from: int | None
    """first logged step whose rate is below the equation, where the run cooled down"""
    restarted_at: int | None
    """first logged step of a second run, which continued with the weights; its rates are not fitted"""
    raised_at: tuple[int, ...]
    """later logged steps at which the rate rose once more"""


def fit_schedule(steps: Array, rates: Array, d_model: int) -> FittedSchedule | None:
    """Warm-up and factor of a log, its steps increasing from 1 and the rate at each, (row,); None unless it shows both
    the rise and the decay of equation 3."""
    usable = np.isfinite(steps) & np.isfinite(rates) & (steps >= 1) & (rates >= 0)
    steps, rates = steps[usable], rates[usable]
    rises = np.diff(rates) > 0
    begins = rises & ~np.append(False, rises[:-1]) & (np.cumsum(~rises) > 0)
    starts = np.flatnonzero(begins) + 1
    n_first = starts[0] if len(starts) else len(steps)
    # factor * min(1, (step / warmup)^1.5): flat where the rate falls as the inverse square root.
    reduced = rates[:n_first] * np.sqrt(d_model * steps[:n_first])
    factor = float(reduced.max(initial=0))
    flat = np.flatnonzero(reduced > factor * (1 - ROUNDING))
    if len(flat) < 2 or not (rising := np.flatnonzero(reduced[: flat[0]])).size:
        return None
    warmup = float(np.median(steps[rising] / (reduced[rising] / factor) ** (2 / 3)))
    n_followed = int(flat[-1]) + 1
    equation = [noam(int(step), d_model, max(round(warmup), 1), factor) for step in steps[:n_followed]]
    if len(starts) and n_first == n_followed + 1 and rates[n_followed] > 0:
        # A single low rate right before a rise is no cooldown but the first row of the next run's warm-up.
        starts[0] = n_first = n_followed
    return FittedSchedule(
        warmup=warmup,
        factor=factor,
        n_followed=n_followed,
        error=float(np.abs(rates[:n_followed] / equation - 1).max()),
        lowered_from=int(steps[n_followed]) if n_followed < n_first else None,
        restarted_at=int(steps[starts[0]]) if len(starts) else None,
        raised_at=tuple(steps[starts[1:]].astype(int).tolist()),
    )


def schedule_curve(d_model: int, warmup: int, end: int, points: int, factor: float = 1.0) -> dict[str, Array]:
    """Steps from 1 to `end`, evenly spaced but for the warm-up's last, and the rate of equation 3 at each."""
    steps = np.unique(np.append(np.linspace(1, end, points).astype(int), warmup))
    return {"step": steps, "rate": np.array([noam(step, d_model, warmup, factor) for step in steps.tolist()])}
