"""Why the learning rate warms up: the size of Adam's updates, and how far weights have moved, in units of the rate."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from model.cancel import check_cancelled
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.snapshots import open_snapshot
from model.trace import Array
from model.training.schedule import noam

WEIGHT_KINDS = {
    "all": ("",),
    "embeddings": ("embedding",),
    "attention": ("attn.",),
    "feed_forward": ("forward.",),
    "norm": ("norm.",),
}
"""kind of weights -> what the paths of its parameters have in them"""


@dataclass(frozen=True)
class WeightMoves:
    """How far the weights have moved between one saved step and the next."""

    ends: Array
    """(interval, 2) first and last step"""
    moved: Array
    """(interval,) mean over all weights of |w at the last step - w at the first|"""
    rates: Array
    """(interval,) sum of the learning rates of the steps between"""
    rounding: Array
    """(interval,) what storing both snapshots in half precision can add to `moved` at most"""

    @property
    def ratio(self) -> Array:
        """(interval,): about 1 where every step moved a weight by the rate in the same direction, 0 if steps cancel."""
        return self.moved / self.rates

    @property
    def blur(self) -> Array:
        """(interval,) by how much rounding can change `ratio` at most."""
        return self.rounding / self.rates


def moves_between_snapshots(opened: Checkpoint, steps: Sequence[int], warmup: int, factor: float) -> WeightMoves:
    """Compare each snapshot of a training, two or more in ascending order, with the one before it; warm-up and factor
    are those of its learning rate, equation 3.

    Raises:
        CheckpointError: a snapshot is missing or damaged.
    """
    moved, rates, rounding, before = [], [], [], _weights(opened, steps[0])
    for first, last in pairwise(steps):
        check_cancelled()
        after = _weights(opened, last)
        moved.append((after - before).abs().double().mean().item())
        rounding.append(_spacing(after).mean().item())
        rates.append(sum(noam(step, opened.config.d_model, warmup, factor) for step in range(first + 1, last + 1)))
        before = after
    return WeightMoves(np.array([*pairwise(steps)]), np.array(moved), np.array(rates), np.array(rounding))


def _weights(opened: Checkpoint, step: int) -> torch.Tensor:
    return torch.cat([each.detach().flatten() for each in open_snapshot(opened, step).model.parameters()])


def _spacing(weights: torch.Tensor) -> torch.Tensor:
    """The distance from each number to the next larger one of half precision, in double."""
    half = weights.abs().half()
    return torch.nextafter(half, torch.full_like(half, torch.inf)).double() - half.double()


def update_sizes(model: nn.Module, adam: torch.optim.Optimizer) -> dict[str, float]:
    """Root mean square of Adam's last update in units of the rate, and of the weights: of all, and of each kind.

    Read from the moments: m̂ / (√v̂ + ε). It is 1 where all gradients so far agree, and small where they cancel.
    """
    squares: dict[str, list[Tensor]] = {kind: [] for kind in WEIGHT_KINDS}
    (group,) = adam.param_groups
    for path, weights in model.named_parameters():
        state, (beta_1, beta_2) = adam.state[weights], group["betas"]
        steps = float(state["step"])
        m_hat, v_hat = state["exp_avg"] / (1 - beta_1**steps), state["exp_avg_sq"] / (1 - beta_2**steps)
        both = torch.stack([m_hat / (v_hat.sqrt() + group["eps"]), weights.detach()]).double().square().flatten(1)
        for kind, parts in WEIGHT_KINDS.items():
            if any(part in path for part in parts):
                squares[kind].append(both)
    roots = {kind: torch.cat(own, dim=1).mean(dim=1).sqrt().tolist() for kind, own in squares.items()}
    return {
        f"{what}_{kind}": root
        for kind, both in roots.items()
        for what, root in zip(("update", "weights"), both, strict=True)
    }
