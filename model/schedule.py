"""The learning rate over time (paper, section 5.3, equation 3)."""


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
