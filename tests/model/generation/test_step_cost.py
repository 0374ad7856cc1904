"""The counted cost of a step is what PyTorch counts, and the cache changes the cost alone."""

import pytest
import torch
from hypothesis import given
from torch.utils.flop_counter import FlopCounterMode

from model.generation.search import greedy
from model.generation.step_cost import cached_step, time_steps, uncached_step
from model.hooks import explicit_path
from model.network.config import BOS, EOS
from model.network.masks import padding_mask
from tests.model.network.test_families import network, parts
from tests.model.strategies import few

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


@few
@given(parts())
def test_the_formulas_count_what_pytorch_counts_in_a_language_model(changes):
    """Shared keys and values and a third matrix of the feed-forward count, a sliding window does not."""
    model, tokens = network(**changes), torch.tensor([[BOS, *range(20, 26)]])
    cache = model.new_cache()
    for length in (1, 2, 7):
        with torch.inference_mode():
            while cache[0].length < length - 1:
                model.decode_next(tokens[:, cache[0].length], cache[0].length, cache)
        whole = flops(lambda length=length: model.decode(tokens[:, :length]))
        newest = flops(lambda length=length: model.decode_next(tokens[:, length - 1], length - 1, cache))
        assert whole == uncached_step(model.config, 0, length)
        assert newest == cached_step(model.config, 0, length)


def test_both_ways_write_to_the_models_last_position_what_greedy_decoding_does_until_its_end(tiny_model):
    cached, seconds = time_steps(tiny_model, SOURCE, 10_000, use_cache=True)
    uncached, _ = time_steps(tiny_model, SOURCE, 20, use_cache=False)
    assert cached[:20] == uncached
    assert len(cached) == len(seconds) == tiny_model.config.max_len
    assert min(seconds) > 0
    assert EOS not in cached
    (expected,) = greedy(tiny_model, [SOURCE])
    written = expected.tokens[:-1] if expected.tokens[-1] == EOS else expected.tokens
    assert cached[: len(written)] == written
