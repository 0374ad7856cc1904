"""The logit lens (nostalgebraist 2020): the decoder's residual stream read as if it were its last."""

from dataclasses import dataclass

import numpy as np
import torch

from model.analysis.residual_stream import INPUT, residual_stream, step_name, sublayers_in
from model.checkpoints.translator import Translator
from model.trace import Array, Trace


@dataclass(frozen=True)
class LogitLens:
    """The output matrix on every step of the decoder; probabilities are of the whole vocabulary."""

    steps: tuple[str, ...]
    """"input", then layer and name of each sub-layer"""
    ends: tuple[bool, ...]
    """whether a step ends a layer; the input counts as one"""
    top: Array
    """(step, position, k): ids of the most probable tokens, best first"""
    probabilities: Array
    """(step, position, k): theirs"""
    predicted: Array
    """(position,): id of the token that the last step finds most probable"""
    probability: Array
    """(step, position): that token's"""
    rank: Array
    """(step, position): that token's, 1 = no other is more probable"""
    difference: float
    """largest difference between the last step's logits and those of the run"""


def logit_lens(translator: Translator, trace: Trace, most: int = 5) -> LogitLens:
    """Read the decoder after every sub-layer.

    Args:
        translator: whose run it was.
        trace: the run.
        most: how many tokens to keep a step and position.
    """
    sublayers = sublayers_in(trace, "decoder")
    predicted = trace.logits.argmax(axis=-1)
    read = []
    for x in residual_stream(trace, "decoder"):
        logits = translator.read_logits(x)
        read.append(_summary(logits, predicted, most))
    top, probabilities, probability, rank = (np.stack(found) for found in zip(*read, strict=True))
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
    found = scores.softmax(-1).numpy()
    top = scores.topk(min(most, logits.shape[-1])).indices.numpy()
    own = np.take_along_axis(logits, predicted[:, None], axis=-1)
    probability = np.take_along_axis(found, predicted[:, None], axis=-1)[:, 0]
    return top, np.take_along_axis(found, top, axis=-1), probability, 1 + (logits > own).sum(axis=-1)
