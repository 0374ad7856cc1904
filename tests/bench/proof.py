"""That the compared models are one function: without this, no two speeds could be compared."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from model.network.config import PAD
from model.network.encoder_decoder import Transformer
from model.training.data import Batch, Pair

LARGEST_DIFFERENCE = 1e-4
"""of two logits, or of two natural logarithms of a probability"""
SMALLEST_AGREEMENT = 0.95
"""of greedy translations: where two words are all but equally likely, rounding decides"""


class DifferentError(Exception):
    """Two models that should be one function are not; the sentence says by how much."""


@torch.inference_mode()
def logit_difference(ours: Transformer, theirs: Callable[[Tensor, Tensor], Tensor], pairs: Sequence[Pair]) -> float:
    """Largest difference between two logits, teacher-forced on a padded batch, at words alone."""
    batch = Batch.of(pairs)
    difference = ours(batch.src, batch.tgt_in) - theirs(batch.src, batch.tgt_in)
    return _checked(difference[batch.tgt_in != PAD].abs().max().item(), "logits")


@torch.inference_mode()
def log_probability_difference(
    ours: Transformer, theirs: Callable[[list[int], list[int]], list[float]], pairs: Sequence[Pair]
) -> float:
    """Largest difference between two log-probabilities of a target token; theirs takes (source ids, target ids)."""
    largest = 0.0
    for src, tgt in pairs:
        batch = Batch.of([(src, tgt)])
        log_p = ours(batch.src, batch.tgt_in).log_softmax(-1).gather(-1, batch.tgt_out[..., None]).flatten()
        largest = max(largest, (log_p - torch.tensor(theirs(src, tgt[1:]))).abs().max().item())
    return _checked(largest, "log-probabilities")


def _checked(difference: float, what: str) -> float:
    if not difference <= LARGEST_DIFFERENCE:
        raise DifferentError(f"{what} differ by {difference:.2g}, more than {LARGEST_DIFFERENCE:g}")
    return difference


def agreement(translations: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Engine -> the share of its translations that are, letter by letter, those of the first engine."""
    first = next(iter(translations.values()))
    return {
        name: sum(a == b for a, b in zip(first, others, strict=True)) / len(first)
        for name, others in translations.items()
    }
