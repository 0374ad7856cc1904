"""Label smoothing in numbers (paper, section 5.4): what training aims at, and how far a run is from it."""

import math
from collections.abc import Sequence

import numpy as np

from model.trace import Array


def smoothed_shares(vocabulary: int, smoothing: float) -> tuple[float, float]:
    """Target probability of the right token, 1 - eps + eps / V, and of each other one, eps / V.

    The eps is spread over the whole vocabulary, the right token among it, as `label_smoothed_loss` does.

    Raises:
        ValueError: eps is outside 0 to 1, or the vocabulary has fewer than two tokens.
    """
    if not 0 <= smoothing <= 1 or vocabulary < 2:
        raise ValueError(f"smoothing is 0 to 1 over two tokens or more, got {smoothing} over {vocabulary}")
    other = smoothing / vocabulary
    return 1 - smoothing + other, other


def target_entropy(vocabulary: int, smoothing: float) -> float:
    """Entropy of the smoothed target in nats: no model's cross-entropy against it can be lower."""
    right, other = smoothed_shares(vocabulary, smoothing)
    others = (vocabulary - 1) * other * math.log(other) if other else 0.0
    return -(right * math.log(right) + others)


def log_probabilities(logits: Array) -> Array:
    """Logarithm of the softmax over the last axis, in double precision; the shape of `logits`."""
    shifted = logits.astype(np.float64)
    shifted -= shifted.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def cross_entropies(logits: Array, targets: Sequence[int], smoothing: float) -> Array:
    """(position,) nats, in double precision: -sum_v q(v) log p(v), q the smoothed target of each position.

    Args:
        logits: (position, vocabulary)
        targets: the right token's id at each position.
        smoothing: eps; 0 is the plain cross-entropy, -log p(right token).
    """
    logs = log_probabilities(logits)
    plain = -logs[np.arange(len(logs)), list(targets)]
    return (1 - smoothing) * plain - smoothing * logs.mean(axis=-1)
