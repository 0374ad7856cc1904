"""Four functions that score a key for a query (paper, section 3.2.1), on the q and k of one traced head.

The dot product and its scaled form are the model's own. The multiplicative form (Luong et al. 2015) is computed with a
W that the model has, W_Q W_K^T. The additive form (Bahdanau et al. 2015) needs weights that the model does not have, so
only its cost is compared.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from model.background.stopwatch import Contender
from model.trace import Array, Attention

DOT, SCALED, MULTIPLICATIVE, ADDITIVE = "dot product", "scaled dot product", "multiplicative", "additive"


@dataclass(frozen=True)
class Multiplicative:
    """(x_q W_Q + b_Q) (x_k W_K + b_K)^T expanded, in double precision; the four terms sum to q k^T."""

    w: Array
    """(d_model, d_model): W_Q W_K^T, of rank at most d_k"""
    scores: Array
    """(query, key): x_q W x_k^T"""
    from_query: Array
    """(query,): x_q W_Q b_K^T; constant along a row, so the softmax ignores it"""
    from_key: Array
    """(key,): b_Q W_K^T x_k^T"""
    constant: float
    """b_Q b_K^T"""

    @property
    def total(self) -> Array:
        """(query, key): the sum of all four terms."""
        return self.scores + self.from_query[:, None] + self.from_key + self.constant


@dataclass(frozen=True)
class ScoringCost:
    """Cost of the scores of all pairs of n queries and m keys of width d_k."""

    multiply_adds: int
    tanhs: int
    numbers: int
    """size of the largest intermediate result"""


def multiplicative(attention: Attention, head: int) -> Multiplicative:
    """The head's scores as x_q W x_k^T plus the terms of its biases."""
    projections = attention.projections
    names = ("w_q", "w_k", "b_q", "b_k")
    w_q, w_k, b_q, b_k = (getattr(projections, name)[head].astype(np.float64) for name in names)
    x_q, x_k = attention.query_input.astype(np.float64), attention.key_input.astype(np.float64)
    w = w_q @ w_k.T
    return Multiplicative(w, x_q @ w @ x_k.T, x_q @ w_q @ b_k, x_k @ w_k @ b_q, float(b_q @ b_k))


def scoring_costs(n: int, m: int, d_k: int) -> Mapping[str, ScoringCost]:
    """Cost of the four functions for n queries and m keys; each query and key is multiplied by its matrix once.

    The additive form takes d_k sums and tanh values for every pair before it sums them with v.
    """
    pairs = n * m
    return {
        DOT: ScoringCost(pairs * d_k, 0, pairs),
        SCALED: ScoringCost(pairs * d_k, 0, pairs),
        MULTIPLICATIVE: ScoringCost(n * d_k * d_k + pairs * d_k, 0, pairs),
        ADDITIVE: ScoringCost((n + m) * d_k * d_k + pairs * d_k, pairs * d_k, pairs * d_k),
    }


def scoring_contenders(q: Array, k: Array, device: str) -> Mapping[str, Contender]:
    """The four functions on q (query, d_k) and k (key, d_k), whose rows are repeated up to the length to be timed.

    W, W_1, W_2 and v of the last two are seeded normal numbers in place of trained weights.
    """
    d_k = q.shape[-1]
    numbers = torch.Generator().manual_seed(0)
    w, w_1, w_2 = (torch.randn(d_k, d_k, generator=numbers).to(device) / math.sqrt(d_k) for _ in range(3))
    v = torch.randn(d_k, generator=numbers).to(device)
    functions = {
        DOT: dot_product,
        SCALED: lambda q, k: dot_product(q, k) / math.sqrt(d_k),
        MULTIPLICATIVE: lambda q, k: dot_product(q @ w, k),
        ADDITIVE: lambda q, k: additive(q @ w_1, k @ w_2, v),
    }

    def contender(function: Callable[[Tensor, Tensor], Tensor]) -> Contender:
        def prepare(length: int) -> Callable[[], Tensor]:
            queries, keys = (torch.from_numpy(np.resize(x, (length, d_k))).to(device) for x in (q, k))
            return lambda: function(queries, keys)

        return prepare

    return {name: contender(function) for name, function in functions.items()}


def head_contenders(attention: Attention, head: int, device: str) -> Mapping[str, Contender]:
    """The same for the q and k of one head of a run."""
    return scoring_contenders(attention.q[head], attention.k[head], device)


def dot_product(q: Tensor, k: Tensor) -> Tensor:
    """q k^T: (query, d_k), (key, d_k) -> (query, key); one matrix product."""
    return q @ k.T


def additive(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """v^T tanh(q_i + k_j), for queries and keys already multiplied by W_1 and W_2.

    Because of the tanh this is not one matrix product: it needs an intermediate (query, key, d_k) tensor.
    """
    return torch.tanh(q[:, None] + k) @ v
