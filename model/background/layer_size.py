"""What an attention layer costs, by its sizes: the products, parameters and cached numbers that all counts are made of.

Multiply-adds are those of matrix products; exponentials, norms, biases and sums are not counted.
"""

from dataclasses import dataclass

from model.network.config import TransformerConfig
from model.trace import Attention, Trace

SHARING = ("Multi-head", "Grouped-query", "Multi-query")
"""full attention with keys and values of their own for each query head, shared by some, shared by all"""


@dataclass(frozen=True)
class LayerSize:
    """What the cost of one attention layer depends on, besides the number of tokens."""

    d_model: int
    heads: int
    kv_heads: int
    """heads of keys and values"""
    d_k: int
    d_v: int

    @classmethod
    def of(cls, config: TransformerConfig, cross: bool = False) -> "LayerSize":
        """As a configuration states it; cross-attention shares no heads."""
        shared = config.n_heads if cross else config.kv_heads
        return cls(config.d_model, config.n_heads, shared, config.d_k, config.d_v)

    @classmethod
    def read(cls, attention: Attention) -> "LayerSize":
        """As the arrays of a run have it."""
        heads = attention.n_heads
        kv_heads = heads if attention.kv_head is None else len(set(attention.kv_head))
        return cls(attention.out.shape[-1], heads, kv_heads, attention.d_k, attention.v.shape[-1])

    def products(self, queries: int, keys: int) -> int:
        """Multiply-adds of q k^T and pattern v, all heads."""
        return self.heads * attention_products(queries * keys, self.d_k, self.d_v)

    def projections(self, queries: int, keys: int) -> int:
        """Multiply-adds of W_Q and W_O for the queries, W_K and W_V for the keys."""
        return self.d_model * (self.d_k + self.d_v) * (queries * self.heads + keys * self.kv_heads)

    @property
    def parameters(self) -> int:
        """Numbers in W_Q, W_K, W_V and W_O."""
        return self.projections(1, 1)

    @property
    def cached(self) -> int:
        """Numbers of keys and values that later tokens need of each token."""
        return self.kv_heads * (self.d_k + self.d_v)


def layer_sizes(trace: Trace, kind: str) -> list[LayerSize]:
    """The sizes of each layer whose attention of `kind` is in the run."""
    return [LayerSize.read(attention) for (name, _), attention in trace.attentions.items() if name == kind]


def attention_products(cells: int, d_k: int, d_v: int) -> int:
    """Multiply-adds of q k^T and pattern v over so many pairs of a query and a key."""
    return cells * (d_k + d_v)


def shared_heads(size: LayerSize) -> dict[str, int]:
    """Heads of keys and values in the other schemes than the layer's own, by name."""
    between = size.kv_heads if 1 < size.kv_heads < size.heads else max(size.heads // 4, 1)
    schemes = dict(zip(SHARING, (size.heads, between, 1), strict=True))
    own = size.kv_heads
    return {
        name: heads
        for name, heads in schemes.items()
        if heads != own and (name != "Grouped-query" or 1 < heads < size.heads)
    }
