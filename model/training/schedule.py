"""The learning rate over time (paper, section 5.3, equation 3)."""

from dataclasses import dataclass

import numpy as np

from model.trace import Array


def noam(step: int, d_model: int, warmup: int, factor: float = 1.0) -> float:
    """factor * d_model^-0.5 * min(step^-0.5, step * warmup^-1.5); steps count from 1.

    Raises:
        ValueError: `step` or `warmup` is below 1.
    """
    if step < 1 or warmup < 1:
        raise ValueError(f"step and warmup count from 1, got {step} and {warmup}")
    return factor * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def cooldown(step: int, steps: int, length: int) -> float:
    """What the rate is multiplied by: 1, and over the last `length` of `steps` steps down to 0 in a line.

    Not in the paper, which averages checkpoints instead; both settle the weights (Hägele et al. 2024).
    """
    return min(1.0, (steps - step) / length) if length else 1.0


ROUNDING = 1e-4
"""Relative: a log keeps six digits of a rate."""


@dataclass(frozen=True)
class Measured:
    """What equation 3 must have been for the logged rates."""

    warmup: float
    """steps"""
    factor: float
    """what equation 3 was multiplied by; the paper has 1"""
    error: float
    """largest relative difference between the equation with these two and the logged rates, before `lowered_from`"""
    lowered_from: int | None
    """first logged step with a rate below the equation's at the end, where a run cooled down"""
    restarted_at: int | None
    """first logged step of a later run that went on with the weights and warmed up once more; not read here"""


def measured_schedule(steps: Array, rates: Array, d_model: int) -> Measured | None:
    """Warm-up and factor of a log; None where it does not hold both the rise and the fall of equation 3.

    Args:
        steps: (row,) rising, from 1.
        rates: (row,) the learning rate of each.
        d_model: width of the model.
    """
    usable = np.isfinite(steps) & np.isfinite(rates) & (steps >= 1) & (rates > 0)
    steps, rates = steps[usable], rates[usable]
    if not len(steps):
        return None
    rises = np.diff(rates) > 0
    again = np.flatnonzero(rises & (np.cumsum(~rises) > 0))
    restarted_at = int(steps[again[0] + 1]) if len(again) else None
    if len(again):
        steps, rates = steps[: again[0] + 1], rates[: again[0] + 1]
    # factor * min(1, (step / warmup)^1.5): flat where the rate falls as the inverse square root.
    reduced = rates * np.sqrt(d_model * steps)
    factor = float(reduced.max())
    flat = np.flatnonzero(reduced > factor * (1 - ROUNDING))
    rising = np.arange(flat[0])
    if len(flat) < 2 or not len(rising):
        return None
    warmup = float(np.median(steps[rising] / (reduced[rising] / factor) ** (2 / 3)))
    followed = slice(0, flat[-1] + 1)
    equation = np.array([noam(int(step), d_model, max(round(warmup), 1), factor) for step in steps[followed]])
    after = steps[flat[-1] + 1 :]
    return Measured(
        warmup=warmup,
        factor=factor,
        error=float(np.abs(rates[followed] / equation - 1).max()),
        lowered_from=int(after[0]) if len(after) else None,
        restarted_at=restarted_at,
    )
