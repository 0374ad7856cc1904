"""One training step, written out: loss, gradient, clipping, Adam's moments with their bias corrections, update.

Everything happens on a copy of the model that belongs to the call; the shared one stays as it is.
"""

import copy
import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from model.cancel import check_cancelled
from model.checkpoints.checkpoint import Checkpoint
from model.needs import Need
from model.network.network import Network
from model.trace import Array, Trace, log_probabilities
from model.training.loss import label_smoothed_loss
from model.training.schedule import noam

BETA_1 = 0.9
"""of the paper (section 5.3) and of PyTorch's Adam"""
NEW_TOKENS = 12
"""that a language model writes after the text"""


@dataclass(frozen=True)
class StepOptions:
    """How to take the steps; the defaults are the paper's (sections 5.3 and 5.4), which does not mention clipping."""

    steps: int = 1
    """on the same pair, one after another; Adam's moments start at 0"""
    first: int = 4000
    """number in equation 3 of the first of them"""
    warmup: int = 4000
    factor: float = 1.0
    """multiplies equation 3"""
    beta_2: float = 0.98
    epsilon: float = 1e-9
    largest_norm: float = 0.0
    """of the gradient of all weights together; a longer one is scaled down to it. 0: no clipping"""
    smoothing: float = 0.1


@dataclass(frozen=True)
class AdamStep:
    """What Adam (Kingma and Ba 2015) does to one tensor of weights in one step; all of the tensor's shape."""

    gradient: Tensor
    """after clipping"""
    m: Tensor
    """running mean of the gradients, beta_1 m + (1 - beta_1) g"""
    v: Tensor
    """running mean of their squares, beta_2 v + (1 - beta_2) g^2"""
    m_hat: Tensor
    """m / (1 - beta_1^t): what m would be had it not started at 0"""
    v_hat: Tensor
    update: Tensor
    """-rate m_hat / (sqrt(v_hat) + epsilon), which is added to the weights"""


def adam_step(
    gradient: Tensor, m: Tensor, v: Tensor, t: int, rate: float, beta_2: float = 0.98, epsilon: float = 1e-9
) -> AdamStep:
    """One step of Adam for one tensor, number t from 1 on; m and v are its moments before this step, 0 before the
    first."""
    m = BETA_1 * m + (1 - BETA_1) * gradient
    v = beta_2 * v + (1 - beta_2) * gradient**2
    m_hat, v_hat = m / (1 - BETA_1**t), v / (1 - beta_2**t)
    return AdamStep(gradient, m, v, m_hat, v_hat, -rate * m_hat / (v_hat.sqrt() + epsilon))


@dataclass(frozen=True)
class Block:
    """A corner of a matrix, as stored: (output, input) dimension."""

    path: str
    """of the parameter"""
    row: int = 0
    column: int = 0
    size: int = 1
    """rows and columns, where the matrix has as many"""

    def of(self, matrix: Tensor) -> Array:
        part = matrix[self.row : self.row + self.size, self.column : self.column + self.size]
        return part.detach().cpu().numpy().copy()


@dataclass(frozen=True)
class TakenSteps:
    """The last of the steps, in one block of a matrix, and what all of them did."""

    before: Array
    """(row, column) of the block: weights before the last step"""
    gradient: Array
    """as it comes from back-propagation; Adam's own is after clipping"""
    adam: dict[str, Array]
    """the fields of AdamStep"""
    after: Array
    rate: float
    losses: Array
    """(step + 1,) label-smoothed, nats per token: before the first step, then after each"""
    norms: Array
    """(step,) of the gradient of all weights together, before clipping"""
    sizes: Array
    """(step,) mean absolute update of all weights together, in units of the rate"""
    largest_update: float
    """of all weights in the last step, in units of its rate"""
    texts: tuple[str, str]
    """what the model writes before and after"""
    log_probabilities: tuple[Array, Array]
    """(position,) of the pair's tokens, before and after"""
    parameters: int
    """trained weights; the copy takes 16 bytes for each: weight, gradient, m and v"""


def take_steps(opened: Checkpoint, trace: Trace, options: StepOptions, block: Block) -> TakenSteps:
    """Train a copy of a model of this project on the tokens of a run, without its interventions; of the matrix's
    `block` numbers are kept.

    Raises:
        KeyError: the model has no such parameter.
    """
    learner = copy.deepcopy(opened.model).requires_grad_(True)
    weights = dict(learner.named_parameters())
    chosen = weights[block.path]
    moments = {path: (torch.zeros_like(each), torch.zeros_like(each)) for path, each in weights.items()}
    losses, norms, sizes = [], [], []
    for t in range(1, options.steps + 1):
        check_cancelled()
        loss = _loss(learner, trace, options.smoothing)
        gradients = dict(zip(weights, torch.autograd.grad(loss, [*weights.values()]), strict=True))
        norm = math.sqrt(sum(float(each.double().square().sum()) for each in gradients.values()))
        factor = clip_factor(norm, options.largest_norm)
        rate = noam(options.first + t - 1, opened.config.d_model, options.warmup, options.factor)
        before, moved, largest = block.of(chosen), 0.0, 0.0
        for path, each in weights.items():
            step = adam_step(gradients[path] * factor, *moments[path], t, rate, options.beta_2, options.epsilon)
            moments[path] = step.m, step.v
            each.data += step.update
            moved += float(step.update.abs().double().sum())
            largest = max(largest, float(step.update.abs().max()))
            if each is chosen:
                kept = {name: block.of(value) for name, value in vars(step).items()}
        losses.append(loss.item())
        norms.append(norm)
        sizes.append(moved / rate / sum(map(torch.numel, weights.values())))
    after = replace(opened, model=learner.requires_grad_(False))
    losses.append(_loss(learner, trace, options.smoothing).item())
    return TakenSteps(
        before=before,
        gradient=block.of(gradients[block.path]),
        adam=kept,
        after=block.of(chosen),
        rate=rate,
        losses=np.array(losses),
        norms=np.array(norms),
        sizes=np.array(sizes),
        largest_update=largest / rate,
        texts=(write_greedily(opened, trace), write_greedily(after, trace)),
        log_probabilities=(_log_p(opened, trace), _log_p(after, trace)),
        parameters=sum(map(torch.numel, weights.values())),
    )


def clip_factor(norm: float, largest: float) -> float:
    """What a gradient of this norm is multiplied by so that it is no longer than `largest`; 1 where that is 0.

    The 1e-6 against a division by 0 is that of PyTorch's `clip_grad_norm_`.
    """
    return min(1.0, largest / (norm + 1e-6)) if largest else 1.0


def write_greedily(opened: Checkpoint, trace: Trace) -> str:
    """What the model writes to the text of a run, the most probable token each time, with no intervention."""
    if Need.CROSS_ATTENTION in opened.features:
        return opened.translate([trace.source], beam_size=1)[0]
    return opened.continue_text([trace.source], NEW_TOKENS, temperature=0.0)[0]


def as_trained(trace: Trace) -> Trace:
    """The tokens of a run, for one in which nothing acts."""
    return replace(trace, interventions=())


def _log_p(opened: Checkpoint, trace: Trace) -> Array:
    logits = opened.unrecorded_logits(as_trained(trace))
    return log_probabilities(logits)[np.arange(len(trace.next_ids)), list(trace.next_ids)]


def _loss(model: Network, trace: Trace, smoothing: float) -> Tensor:
    """Label-smoothed cross-entropy in nats per token."""
    logits = model(*model.texts_of(trace))
    targets = torch.tensor([trace.next_ids], device=logits.device)
    return label_smoothed_loss(logits, targets, smoothing) / targets.numel()
