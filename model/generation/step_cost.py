"""What a decoding step costs with and without the cache of keys and values: counted, and measured."""

import time
from collections.abc import Sequence

import torch

from model.background.layer_size import LayerSize
from model.background.sizes import multiply_adds
from model.generation.steps import steps_of
from model.network.config import TransformerConfig
from model.network.network import Network

DECODER_PARTS = ("decoder_self", "cross", "decoder_feed_forward", "output")


def uncached_step(config: TransformerConfig, n_src: int, length: int) -> int:
    """Multiply-adds of the matrix products of a step that recomputes the whole prefix of `length` tokens."""
    works = multiply_adds(config, n_src, length)
    return sum(works[part].total for part in DECODER_PARTS)


def cached_step(config: TransformerConfig, n_src: int, length: int) -> int:
    """Multiply-adds of the matrix products of a step that computes only the newest of `length` tokens.

    Each layer projects one position, compares its query with `length` keys and, in cross-attention, with n_src keys.
    The memory's keys and values are projected at the first step only. A sliding window saves nothing: its scores are
    computed before masking.
    """
    works = multiply_adds(config, n_src, 1)
    own, cross = works["decoder_self"], works["cross"]
    own_attention = own.weights + length * (own.scores + own.weighted)
    memory_projections = cross.layers * LayerSize.of(config, cross=True).projections(0, n_src)
    cross_attention = cross.total - (0 if length == 1 else memory_projections)
    return own_attention + cross_attention + works["decoder_feed_forward"].total + works["output"].total


@torch.inference_mode()
def time_steps(
    model: Network, source: Sequence[int], n_steps: int, use_cache: bool
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """The tokens of `n_steps` of greedy decoding, or of as many as the model has positions, and the seconds that each
    took; by its own layers, not their fast copy. </s> is ruled out so that the sentence reaches the full length.
    `source` and `use_cache` as in `Steps`."""
    steps = steps_of(model)(model, [source], use_cache=use_cache)
    tokens: list[int] = []
    seconds: list[float] = []
    started = time.perf_counter()
    for logits in steps:
        best = steps.rule_out(logits, end=True).argmax(dim=-1)
        tokens.append(int(best))  # waits for the device, so the clock sees the whole step
        seconds.append(time.perf_counter() - started)
        if len(tokens) == n_steps:
            break
        steps.extend(best)
        started = time.perf_counter()
    return tuple(tokens), tuple(seconds)
