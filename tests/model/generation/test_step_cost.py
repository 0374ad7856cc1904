"""The counted cost of a step is what PyTorch counts, and the cache changes the cost alone."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from model.generation.search import greedy
from model.generation.step_cost import cached_step, time_steps, uncached_step
from model.hooks import explicit_path
from model.network.config import BOS, EOS
from model.network.masks import padding_mask

SOURCE = [7, 8, 9, 10, EOS]


def flops(work) -> int:
    """A multiply-add is two operations."""
    counter = FlopCounterMode(display=False)
    with torch.inference_mode(), explicit_path(), counter:
        work()
    return counter.get_total_flops() // 2


@pytest.mark.parametrize("length", [1, 2, 7])
def test_the_formulas_count_what_pytorch_counts(tiny_model, length):
    src = torch.tensor([SOURCE])
    with torch.inference_mode():
        memory, mask = tiny_model.encode(src, padding_mask(src)), padding_mask(src)
        prefix = torch.tensor([[BOS, *range(20, 19 + length)]])
        cache = tiny_model.new_cache()
        for position in range(length - 1):
            tiny_model.decode_next(prefix[:, position], position, memory, mask, cache)
    config = tiny_model.config
    whole = flops(lambda: tiny_model.decode(prefix, memory, mask))
    newest = flops(lambda: tiny_model.decode_next(prefix[:, -1], length - 1, memory, mask, cache))
    assert whole == uncached_step(config, len(SOURCE), length)
    assert newest == cached_step(config, len(SOURCE), length)


def test_both_ways_write_the_same_tokens_and_time_each(tiny_model):
    cached, seconds = time_steps(tiny_model, SOURCE, 20, use_cache=True)
    uncached, _ = time_steps(tiny_model, SOURCE, 20, use_cache=False)
    assert cached == uncached
    assert len(cached) == len(seconds) == 20
    assert min(seconds) > 0
    assert EOS not in cached


def test_until_its_end_it_is_greedy_decoding(tiny_model):
    tokens, _ = time_steps(tiny_model, SOURCE, 10, use_cache=True)
    (expected,) = greedy(tiny_model, [SOURCE])
    ended = expected.tokens.index(EOS) if EOS in expected.tokens else len(expected.tokens)
    same = min(ended, 10)
    assert tokens[:same] == expected.tokens[:same]


def test_it_ends_where_the_models_positions_end(tiny_model):
    tokens, _ = time_steps(tiny_model, SOURCE, 10_000, use_cache=True)
    assert len(tokens) == tiny_model.config.max_len - 1
