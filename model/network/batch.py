"""Token ids of unequal length as batches."""

import random
from collections.abc import Hashable, Sequence

import torch
from torch import Tensor

from model.network.config import PAD


def token_batches(lengths: Sequence[int], max_tokens: int, seed: str) -> list[list[int]]:
    """Indices in batches whose longest length times count stays within `max_tokens` (section 5.1).

    A sentence longer than `max_tokens` becomes a batch of its own. Batching sentences of similar length keeps padding
    low; a little noise on the lengths varies the batches from epoch to epoch. `seed` decides the noise and the order.
    """
    rng = random.Random(seed)
    order = sorted(range(len(lengths)), key=lambda i: lengths[i] + rng.random())
    batches: list[list[int]] = []
    for i in order:
        # Sorted by length up to noise below one, so this sentence is the longest of its batch.
        if not batches or lengths[i] * (len(batches[-1]) + 1) > max_tokens:
            batches.append([])
        batches[-1].append(i)
    rng.shuffle(batches)
    return batches


def without_padding(batches: Sequence[Sequence[int]], shapes: Sequence[Hashable]) -> list[list[int]]:
    """The batches divided so that the sentences of each have one shape."""
    divided = []
    for batch in batches:
        of_shape: dict[Hashable, list[int]] = {}
        for i in batch:
            of_shape.setdefault(shapes[i], []).append(i)
        divided += of_shape.values()
    return divided


def pad_batch(sentences: list[list[int]], device: torch.device | str | None = None, pad: int = PAD) -> Tensor:
    """Token ids of unequal length -> (batch, longest), padded with the token `pad`."""
    longest = max(map(len, sentences))
    return torch.tensor([s + [pad] * (longest - len(s)) for s in sentences], device=device)
