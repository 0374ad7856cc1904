"""The logit lens (nostalgebraist 2020): the residual stream of the last stack read as if it were its last."""

from dataclasses import dataclass

import numpy as np
import torch

from model.analysis.stream.residual_stream import INPUT, residual_stream, step_name
from model.checkpoints.checkpoint import Checkpoint
from model.trace import Array, Trace


@dataclass(frozen=True)
class LogitLens:
    """The output matrix applied after every step of the last stack; probabilities are over the whole vocabulary."""

    steps: tuple[str, ...]
    """"input", then layer and name of each sub-layer"""
    ends: tuple[bool, ...]
    """whether each step is the end of a layer; the input counts as one"""
    top: Array
    """(step, position, k): ids of the most probable tokens, best first"""
    probabilities: Array
    """(step, position, k): their probabilities"""
    predicted: Array
    """(position,): id of the most probable token at the last step"""
    probability: Array
    """(step, position): probability of `predicted`"""
    rank: Array
    """(step, position): rank of `predicted`, 1 = no token is more probable"""
    difference: float
    """largest difference between the last step's logits and the run's"""


def logit_lens(opened: Checkpoint, trace: Trace, most: int = 5) -> LogitLens:
    """Read the last stack of a run, a decoder if there is one, after every sub-layer; `top` lists `most` tokens each
    time."""
    stack = list(trace.streams)[-1]
    sublayers = trace.streams[stack].sublayers
    predicted = trace.logits.argmax(axis=-1)
    steps = []
    for x in residual_stream(trace, stack):
        logits = opened.read_logits(x)
        steps.append(_summary(logits, predicted, most))
    top, probabilities, probability, rank = (np.stack(values) for values in zip(*steps, strict=True))
    return LogitLens(
        steps=(INPUT, *map(step_name, sublayers)),
        ends=(True, *(sublayer.name == "feed_forward" for sublayer in sublayers)),
        top=top,
        probabilities=probabilities,
        predicted=predicted,
        probability=probability,
        rank=rank,
        difference=float(np.abs(logits - trace.logits).max()),
    )


def _summary(logits: Array, predicted: Array, most: int) -> tuple[Array, Array, Array, Array]:
    """Top ids and probabilities (position, k); probability and rank of the predicted token (position,)."""
    scores = torch.from_numpy(logits).double()
    probabilities = scores.softmax(-1).numpy()
    top = scores.topk(min(most, logits.shape[-1])).indices.numpy()
    own = np.take_along_axis(logits, predicted[:, None], axis=-1)
    probability = np.take_along_axis(probabilities, predicted[:, None], axis=-1)[:, 0]
    return top, np.take_along_axis(probabilities, top, axis=-1), probability, 1 + (logits > own).sum(axis=-1)
