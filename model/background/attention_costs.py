"""What attention over n tokens costs, counted from the sizes of a run's layers, and three ways to compute it, timed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import elu, scaled_dot_product_attention

from model.background.layer_size import LayerSize, layer_sizes, shared_heads
from model.background.stopwatch import FITTED, Contender
from model.background.table_1 import lstm_work
from model.trace import Array, Attention, Trace

FULL, WINDOW, FLASH = "Full attention", "Sliding window", "FlashAttention"
LINEAR, LSTM = "Linear attention", "Recurrent (LSTM)"
FLASH_TILE = 64
"""queries and keys of FlashAttention's tile"""

EAGER, FUSED, ELU = "eager: n × n matrices", "fused kernel", "linear: elu + 1"
MEASURED = (128, 256, 512, 1024, 2048, 4096)
MOST_WORK = 4e10
"""multiply-adds of one timed call; longer texts than that are not timed"""


@dataclass(frozen=True)
class Cost:
    """Of all layers for n tokens."""

    multiply_adds: int
    scores: int
    """numbers that exist at once between q, k, v and z, in the largest layer: scores and attention weights, or what a
    method has in their place"""
    cache: int
    """numbers that the next token needs of those before: keys and values of all layers, or a state"""
    parameters: int
    """numbers in the matrices of all layers, without biases"""

    @property
    def memory(self) -> int:
        """All three together, in numbers."""
        return self.scores + self.cache + self.parameters


def linear_products(positions: int, features: int, d_k: int, d_v: int, random: bool) -> int:
    """Multiply-adds of linear attention.

    Args:
        positions: the queries of all heads, and the keys of all heads of keys and values.
        features: m.
        d_k: width of queries and keys.
        d_v: width of values.
        random: whether the features are products with m random vectors; elu(x) + 1 has none.
    """
    # phi(k) v^T and sum phi(k) for each key; phi(q) S and phi(q) s for each query
    return positions * features * (d_v + 1 + d_k * random)


def attention_costs(sizes: Sequence[LayerSize], n: int, window: int, features: int) -> dict[str, Cost]:
    """Multiply-adds and memory of attention over n queries and as many keys, with its projections, by method.

    All n^2 pairs are counted, as a program computes them that masks scores afterwards. The methods differ from the
    model's own full attention in one part each; the last ones in how many heads share keys and values. A query of the
    sliding window reads `window` keys at most, and linear attention has so many random features.
    """
    found = {FULL: [_full(size, n) for size in sizes]}
    found[WINDOW] = [_windowed(size, n, window) for size in sizes]
    found[FLASH] = [_tiled(size, n) for size in sizes]
    found[LINEAR] = [_linear(size, n, features) for size in sizes]
    found[LSTM] = [_recurrent(size, n) for size in sizes]
    for name in shared_heads(sizes[0]):
        found[name] = [_full(replace(size, kv_heads=shared_heads(size).get(name, size.kv_heads)), n) for size in sizes]
    return {name: _total(costs) for name, costs in found.items()}


def _full(size: LayerSize, n: int) -> Cost:
    work = size.projections(n, n) + size.products(n, n)
    return Cost(work, 2 * size.heads * n * n, n * size.cached, size.parameters)


def _windowed(size: LayerSize, n: int, window: int) -> Cost:
    """Each query reads the `window` nearest keys, or all n (Beltagy et al. 2020; Child et al. 2019)."""
    read = min(window, n)
    work = size.projections(n, n) + size.products(n, read)
    return Cost(work, 2 * size.heads * n * read, read * size.cached, size.parameters)


def _tiled(size: LayerSize, n: int) -> Cost:
    """The same products as full attention; of the scores, one tile a head exists, with its rows of m and l."""
    tile = min(FLASH_TILE, n)
    return replace(_full(size, n), scores=size.heads * (tile * tile + 2 * tile))


def _linear(size: LayerSize, n: int, features: int) -> Cost:
    """phi(q) and phi(k) of one position in place of scores, S and s in place of keys and values.

    Query heads that share keys and values share phi(k), S and s, too.
    """
    rows = size.heads + size.kv_heads
    products = linear_products(n * rows, features, size.d_k, size.d_v, random=True)
    state = size.kv_heads * features * (size.d_v + 1)
    return Cost(size.projections(n, n) + products, rows * features, state, size.parameters)


def even_length(sizes: Sequence[LayerSize], features: int) -> int:
    """Tokens above which linear attention needs fewer multiply-adds than full attention, in all layers together."""
    linear = sum(
        linear_products(size.heads + size.kv_heads, features, size.d_k, size.d_v, random=True) for size in sizes
    )
    return linear // sum(size.products(1, 1) for size in sizes)


def _recurrent(size: LayerSize, n: int) -> Cost:
    """An LSTM of the layer's width: four gates, and a state of h and c."""
    d = size.d_model
    return Cost(lstm_work(n, d), 4 * d, 2 * d, 8 * d * d)


def _total(costs: Sequence[Cost]) -> Cost:
    """All layers; their scores do not exist at the same time."""
    return Cost(
        sum(cost.multiply_adds for cost in costs),
        max(cost.scores for cost in costs),
        sum(cost.cache for cost in costs),
        sum(cost.parameters for cost in costs),
    )


@dataclass(frozen=True)
class CostCurves:
    """`attention_costs` at several n."""

    n: Array
    """(length,)"""
    methods: tuple[str, ...]
    multiply_adds: Array
    """(method, length)"""
    scores: Array
    """(method, length), numbers"""
    cache: Array
    """(method, length), numbers"""
    parameters: Array
    """(method, length), numbers"""

    @property
    def memory(self) -> Array:
        """(method, length), numbers: scores, cache and parameters."""
        return self.scores + self.cache + self.parameters


def cost_over_n(trace: Trace, kind: str, lengths: Sequence[int], window: int, features: int) -> CostCurves:
    """What all layers of a kind of attention cost over n; in double precision, as counts exceed 64 bits."""
    sizes = layer_sizes(trace, kind)
    costs = [attention_costs(sizes, n, window, features) for n in lengths]
    methods = tuple(costs[0])

    def counts(name: str) -> Array:
        return np.array([[float(getattr(cost[method], name)) for cost in costs] for method in methods])

    return CostCurves(np.array(lengths), methods, *map(counts, ("multiply_adds", "scores", "cache", "parameters")))


def measured_lengths(size: LayerSize) -> list[int]:
    """Those of `MEASURED` that take a layer no more than `MOST_WORK`; at least as many as a power law is fitted to."""
    return [n for rank, n in enumerate(MEASURED) if rank < FITTED or size.products(n, n) <= MOST_WORK]


def attention_contenders(attention: Attention, device: str) -> Mapping[str, Contender]:
    """The attention of all heads of one layer, without mask and projections, on its q, k and v repeated to length n."""

    @cache
    def repeat(length: int) -> list[Tensor]:
        arrays = attention.q, attention.k, attention.v
        return [torch.from_numpy(x[:, np.arange(length) % x.shape[1]]).to(device) for x in arrays]

    functions = {
        EAGER: lambda q, k, v: eager_attention(q, k, v, attention.scale),
        FUSED: lambda q, k, v: scaled_dot_product_attention(q[None], k[None], v[None], scale=attention.scale)[0],
        ELU: elu_attention,
    }

    def contender(function: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Contender:
        def prepare(length: int) -> Callable[[], Tensor]:
            return lambda: function(*repeat(length))

        return prepare

    return {name: contender(function) for name, function in functions.items()}


def eager_attention(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """softmax(scale q k^T) v, (heads, n, d_v): head by head, so that two n x n matrices exist at once, not 2 heads."""
    return torch.stack([(scale * q @ k.T).softmax(dim=-1) @ v for q, k, v in zip(q, k, v, strict=True)])


def elu_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """phi(q) (phi(k)^T v) / phi(q) sum phi(k) with phi(x) = elu(x) + 1, (heads, n, d_v) (Katharopoulos et al. 2020)."""
    phi_q, phi_k = elu(q) + 1, elu(k) + 1
    return phi_q @ (phi_k.mT @ v) / (phi_q @ phi_k.sum(dim=1)[..., None])
