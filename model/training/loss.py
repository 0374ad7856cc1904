"""Cross-entropy with label smoothing (paper, section 5.4)."""

import math
from collections.abc import Sequence

import numpy as np
import torch.nn.functional as F
from torch import Tensor

from model.network.config import PAD
from model.trace import Array, log_probabilities


def label_smoothed_loss(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """Summed cross-entropy in nats against (1 - eps) one-hot + eps uniform, ignoring padding; the paper's eps is 0.1.

    Logits are (batch, target position, vocabulary), targets (batch, target position).
    """
    return F.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=PAD, label_smoothing=smoothing, reduction="sum"
    )


def smoothed_shares(vocabulary: int, smoothing: float) -> tuple[float, float]:
    """Target probability of the correct token, 1 - eps + eps / V, and of every other one, eps / V.

    As in `label_smoothed_loss`, eps is spread over the whole vocabulary, including the correct token.

    Raises:
        ValueError: eps is outside 0 to 1, or the vocabulary has fewer than two tokens.
    """
    if not 0 <= smoothing <= 1 or vocabulary < 2:
        raise ValueError(
            f"smoothing must lie in [0, 1] and the vocabulary have two tokens or more, got {smoothing} and {vocabulary}"
        )
    other = smoothing / vocabulary
    return 1 - smoothing + other, other


def target_entropy(vocabulary: int, smoothing: float) -> float:
    """Entropy of the smoothed target in nats, the lower bound of any model's cross-entropy against it."""
    right, other = smoothed_shares(vocabulary, smoothing)
    others = (vocabulary - 1) * other * math.log(other) if other else 0.0
    return -(right * math.log(right) + others)


def cross_entropies(logits: Array, targets: Sequence[int], smoothing: float) -> Array:
    """(position,) nats, in double precision: -sum_v q(v) log p(v), q the smoothed target of each position; with eps = 0
    the plain cross-entropy, -log p(correct token). Logits are (position, vocabulary), targets the ids of the correct
    tokens."""
    logs = log_probabilities(logits)
    plain = -logs[np.arange(len(logs)), list(targets)]
    return (1 - smoothing) * plain - smoothing * logs.mean(axis=-1)
