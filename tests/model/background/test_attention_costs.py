"""Costs over n: counts are those of the run's arrays and of the products that torch makes. No test looks at a time."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from model.analysis.mechanisms.linear_attention import elu_features, kernel_weights
from model.analysis.mechanisms.modern_parts import cache_bytes
from model.background import attention_costs as costs
from model.background.attention_costs import attention_contenders, attention_costs, cost_over_n
from model.background.layer_size import LayerSize, attention_products, layer_sizes, shared_heads
from model.background.sizes import self_attention_layer
from model.background.table_1 import lstm_work
from model.trace import Trace
from tests.model.checkpoints.test_language_model import MODERN, opened

SIZE = LayerSize(d_model=48, heads=6, kv_heads=6, d_k=8, d_v=8)
SHARED = LayerSize(d_model=48, heads=6, kv_heads=2, d_k=10, d_v=7)
"""no two of its sizes are equal, so that none can stand in another's place"""


@pytest.fixture(scope="module")
def trace(translator) -> Trace:
    return translator.trace("A dog runs and a cat sat.", "Ein Hund rennt.")


@pytest.fixture(scope="module")
def modern(translator) -> Trace:
    return opened(translator.tokenizer).trace("A dog runs.", max_new_tokens=4)


@pytest.mark.parametrize("kind", ["encoder_self", "decoder_self"])
def test_counts_are_the_sizes_of_the_runs_arrays(trace: Trace, kind: str) -> None:
    attentions = [trace.attention(kind, layer) for layer in trace.kind(kind).layers]
    cost = attention_costs(layer_sizes(trace, kind), len(attentions[0].key_tokens), 4, 4)[costs.FULL]
    assert cost.scores == attentions[0].scores.size + attentions[0].pattern.size
    assert cost.cache == sum(a.k.size + a.v.size for a in attentions)
    matrices = [getattr(a.projections, name).size for a in attentions for name in ("w_q", "w_k", "w_v", "w_o")]
    assert cost.parameters == sum(matrices)
    assert cost.memory == cost.scores + cost.cache + cost.parameters


def test_heads_that_share_keys_are_counted_once(modern: Trace) -> None:
    sizes = layer_sizes(modern, "decoder_self")
    assert 0 < sizes[0].kv_heads < sizes[0].heads
    stored = cache_bytes(modern, "decoder_self", 10)
    n = int(stored["run"][0])
    counted = attention_costs(sizes, n, 4, 4)
    assert 4 * counted[costs.FULL].cache == stored["run"][1]
    others = shared_heads(sizes[0])
    assert sizes[0].kv_heads not in others.values()
    for name, heads in others.items():
        assert counted[name].cache * sizes[0].kv_heads == counted[costs.FULL].cache * heads
        assert counted[name].scores == counted[costs.FULL].scores


@pytest.mark.parametrize(
    ("heads", "own", "others"),
    [
        (8, 8, {"Grouped-query": 2, "Multi-query": 1}),
        (8, 4, {"Multi-head": 8, "Multi-query": 1}),
        (8, 1, {"Multi-head": 8, "Grouped-query": 2}),
        (4, 4, {"Multi-query": 1}),
        (1, 1, {}),
    ],
)
def test_the_schemes_of_sharing_are_the_other_ones(heads: int, own: int, others: dict[str, int]) -> None:
    assert shared_heads(replace(SIZE, heads=heads, kv_heads=own)) == others


def test_multiply_adds_are_those_that_torch_makes() -> None:
    q, k, v = (torch.randn(3, 10, width, generator=torch.Generator().manual_seed(width)) for width in (8, 8, 5))
    for function, expected in (
        (lambda: costs.eager_attention(q, k, v, 0.3), 3 * attention_products(100, 8, 5)),
        # The sum of phi(k) is no product of matrices.
        (lambda: costs.elu_attention(q, k, v), 3 * (costs.linear_products(20, 8, 8, 5, random=False) - 10 * 8)),
    ):
        with FlopCounterMode(display=False) as counter:
            function()
        assert counter.get_total_flops() == 2 * expected
    drawn = costs.linear_products(20, 16, 8, 5, random=True) - costs.linear_products(20, 16, 8, 5, random=False)
    assert drawn == 20 * 16 * 8


def test_counts_agree_with_table_1() -> None:
    for n in (1, 7, 1000):
        found = attention_costs([SIZE], n, 4, 4)
        assert found[costs.FULL].multiply_adds == 2 * n * n * SIZE.d_model + 4 * n * SIZE.d_model**2
        assert found[costs.LSTM].multiply_adds == lstm_work(n, SIZE.d_model)


@pytest.mark.parametrize("size", [SIZE, SHARED, replace(SHARED, kv_heads=1), replace(SHARED, d_k=4, d_v=12)])
def test_linear_attention_is_counted_as_torch_makes_it_with_the_heads_that_share(size: LayerSize) -> None:
    """S and s are those of a head of keys and values, and every query head that shares it reads the same."""
    n, m = 9, 5
    numbers = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=numbers)

    q, k, v = draw(size.heads, n, size.d_k), draw(size.kv_heads, n, size.d_k), draw(size.kv_heads, n, size.d_v)
    omega = draw(m, size.d_k)
    with FlopCounterMode(display=False) as counter:
        phi_q, phi_k = (x @ omega.T for x in (q, k))
        state = phi_k.mT @ torch.cat([v, torch.ones(size.kv_heads, n, 1)], dim=-1)  # S and s
        phi_q @ state.repeat_interleave(size.heads // size.kv_heads, dim=0)
    found = attention_costs([size], n, 4, m)[costs.LINEAR]
    assert 2 * (found.multiply_adds - n * size.parameters) == counter.get_total_flops()
    assert found.cache == state.numel()
    assert found.scores == (phi_q.numel() + phi_k.numel()) / n


@pytest.mark.parametrize("sizes", [[SIZE], [SHARED], [SHARED, replace(SHARED, d_k=4, d_v=12)]])
def test_linear_attention_needs_fewer_products_right_above_the_even_length(sizes: list[LayerSize]) -> None:
    even = costs.even_length(sizes, 64)
    for n, fewer in ((even, False), (even + 1, True)):
        found = attention_costs(sizes, n, 4, 64)
        assert (found[costs.LINEAR].multiply_adds < found[costs.FULL].multiply_adds) is fewer


@pytest.mark.parametrize(("d_key", "kv_heads"), [(0, 4), (12, 2), (4, 1)])
def test_a_layer_of_a_configuration_is_counted_as_its_arrays_are(d_key: int, kv_heads: int) -> None:
    config = replace(MODERN, vocab_size=50, d_key=d_key, n_kv_heads=kv_heads)
    size = LayerSize(config.d_model, config.n_heads, kv_heads, config.d_k, config.d_v)
    for n in (1, 7, 100):
        assert self_attention_layer(config, n).total == attention_costs([size], n, 4, 4)[costs.FULL].multiply_adds


def test_each_method_grows_as_it_should() -> None:
    small, large = (attention_costs([SIZE, SIZE], n, 256, 64) for n in (10_000, 1_000_000))
    parts = {name: n * 2 * SIZE.parameters for name, n in (("small", 10_000), ("large", 1_000_000))}

    def grown(name: str) -> float:
        return (large[name].multiply_adds - parts["large"]) / (small[name].multiply_adds - parts["small"])

    assert grown(costs.FULL) == grown(costs.FLASH) == 1e4
    assert grown(costs.WINDOW) == grown(costs.LINEAR) == 100
    assert large[costs.FULL].scores == 1e4 * small[costs.FULL].scores
    assert large[costs.WINDOW].scores == 100 * small[costs.WINDOW].scores
    for name in (costs.FLASH, costs.LINEAR, costs.LSTM):
        assert large[name].scores == small[name].scores
    assert large[costs.FLASH].cache == 100 * small[costs.FLASH].cache
    for name in (costs.WINDOW, costs.LINEAR, costs.LSTM):
        assert large[name].cache == small[name].cache


def test_a_window_over_all_tokens_is_full_attention() -> None:
    found = attention_costs([SIZE], 50, 64, 4)
    assert found[costs.WINDOW] == found[costs.FULL]


def test_layers_of_different_sizes_are_added_and_the_largest_scores_count() -> None:
    other = replace(SIZE, heads=12, kv_heads=3)
    both = attention_costs([SIZE, other], 20, 4, 4)
    for name in (costs.FULL, costs.WINDOW, costs.LINEAR, costs.LSTM):
        one, two = (attention_costs([size], 20, 4, 4)[name] for size in (SIZE, other))
        assert both[name].multiply_adds == one.multiply_adds + two.multiply_adds
        assert both[name].scores == max(one.scores, two.scores)
        assert both[name].cache == one.cache + two.cache


@pytest.mark.parametrize("kind", ["encoder_self", "decoder_self", "cross"])
def test_curves_are_the_counts_at_each_n(trace: Trace, kind: str) -> None:
    curves = cost_over_n(trace, kind, [3, 50, 1_000_000], 16, 32)
    for column, n in enumerate(curves.n):
        counted = attention_costs(layer_sizes(trace, kind), int(n), 16, 32)
        assert curves.methods == tuple(counted)
        for name in ("multiply_adds", "scores", "cache", "parameters", "memory"):
            np.testing.assert_allclose(
                getattr(curves, name)[:, column], [float(getattr(cost, name)) for cost in counted.values()]
            )


@pytest.mark.parametrize("kind", ["encoder_self", "cross"])
def test_what_is_timed_is_attention_on_the_layers_own_vectors(trace: Trace, kind: str) -> None:
    attention = trace.attention(kind, 1)
    n = min(len(attention.query_tokens), len(attention.key_tokens))
    contenders = attention_contenders(attention, "cpu")
    assert list(contenders) == [costs.EAGER, costs.FUSED, costs.ELU]
    eager, fused, linear = (prepare(n)().numpy() for prepare in contenders.values())
    for head in range(attention.n_heads):
        q, k, v = (x[head, :n].astype(float) for x in (attention.q, attention.k, attention.v))
        scores = np.exp(q @ k.T * attention.scale)
        np.testing.assert_allclose(eager[head], scores / scores.sum(1, keepdims=True) @ v, rtol=1e-3, atol=1e-5)
        weights = kernel_weights(elu_features(q), elu_features(k), np.ones((n, n), dtype=bool))
        np.testing.assert_allclose(linear[head], weights @ v, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(eager, fused, rtol=1e-3, atol=1e-5)
    longer = contenders[costs.FUSED](3 * len(attention.query_tokens) + 1)()
    assert longer.shape == (attention.n_heads, 3 * len(attention.query_tokens) + 1, attention.v.shape[-1])


def test_large_layers_are_timed_at_fewer_lengths() -> None:
    assert costs.measured_lengths(SIZE) == list(costs.MEASURED)
    large = replace(SIZE, heads=64, d_k=128, d_v=128)
    lengths = costs.measured_lengths(large)
    assert lengths == list(costs.MEASURED[: len(lengths)])
    assert 3 <= len(lengths) < len(costs.MEASURED)
    assert 64 * attention_products(lengths[-1] ** 2, 128, 128) <= costs.MOST_WORK
    assert len(costs.measured_lengths(replace(SIZE, heads=10**6))) == 3
