"""Token ids of unequal length as batches."""

import random
from collections.abc import Sequence

import torch
from torch import Tensor

from model.network.config import PAD


def token_batches(lengths: Sequence[int], max_tokens: int, seed: str) -> list[list[int]]:
    """Indices in batches whose longest length times count stays within `max_tokens` (section 5.1).

    A sentence longer than `max_tokens` is a batch of its own.

    Sentences of about the same length go together, which leaves little padding. A little noise on
    the lengths changes every epoch who meets whom; `seed` decides it, and the order of the batches.
    """
    rng = random.Random(seed)
    order = sorted(range(len(lengths)), key=lambda i: lengths[i] + rng.random())
    batches: list[list[int]] = []
    for i in order:
        # Sorted by length up to noise below one, so the newest is the longest.
        if not batches or lengths[i] * (len(batches[-1]) + 1) > max_tokens:
            batches.append([])
        batches[-1].append(i)
    rng.shuffle(batches)
    return batches


def pad_batch(sentences: list[list[int]], device: torch.device | str | None = None) -> Tensor:
    """Token ids of unequal length -> (batch, longest), filled up with PAD."""
    longest = max(map(len, sentences))
    return torch.tensor([s + [PAD] * (longest - len(s)) for s in sentences], device=device)
