"""Cross-entropy with label smoothing (paper, section 5.4)."""

import torch.nn.functional as F
from torch import Tensor

from model.config import PAD


def label_smoothed_loss(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """Summed cross-entropy in nats against (1 - eps) one-hot + eps uniform; padding does not count.

    Args:
        logits: (batch, target position, vocabulary)
        targets: (batch, target position)
        smoothing: eps; the paper's is 0.1.
    """
    return F.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=PAD, label_smoothing=smoothing, reduction="sum"
    )
