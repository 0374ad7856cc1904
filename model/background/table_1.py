"""What a layer costs and how far information travels in it (paper, section 4, Table 1).

n is the length of the sequence, d the width of the layer, k the kernel width of a convolution, r the size of the
neighbourhood in restricted self-attention. Table 1 gives orders of growth; these functions evaluate its terms without
constant factors, and the docstrings state the factors of a real layer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from model.trace import Array

Node = tuple[int, int]
"""(level, position): level 0 is the input, level i the output of layer i"""


@dataclass(frozen=True)
class Cost:
    """One row of Table 1 in numbers."""

    operations: int
    """multiply-adds of the layer"""
    sequential: int
    """minimum number of sequential operations"""
    path: int
    """maximum path length: steps between the first position and the last, as in `paths`"""


def self_attention(n: int, d: int) -> Cost:
    """n^2 d operations, 1 sequential, path 1.

    n^2 d is the multiply-adds of Q K^T over all heads; pattern V takes as many again.
    """
    return Cost(n * n * d, 1, len(attention_path(0, n - 1)) - 1)


def recurrent(n: int, d: int) -> Cost:
    """n d^2 operations, n sequential, path n - 1.

    n d^2 is the multiply-adds of one (d, d) matrix applied at each position; an LSTM has 8 such matrices.
    """
    return Cost(n * d * d, n, len(recurrent_path(0, n - 1)) - 1)


def convolutional(n: int, d: int, k: int) -> Cost:
    """k n d^2 operations, 1 sequential, path log_k(n), rounded up, with dilated kernels.

    Products with the zero padding at both ends are counted.
    """
    return Cost(k * n * d * d, 1, len(dilated_path(0, n - 1, k)) - 1)


def restricted(n: int, d: int, r: int) -> Cost:
    """r n d operations, 1 sequential, path about 2 n / r: each position attends to r neighbours around it, or to all n
    if n < r."""
    return Cost(min(r, n) * n * d, 1, len(restricted_path(0, n - 1, r)) - 1)


def layer_costs(n: int, d: int, k: int, r: int) -> Mapping[str, Cost]:
    """Table 1 for a sequence of n positions, in the paper's order.

    Raises:
        ValueError: n or d below 1, or k or r below 2: a width of 1 connects no positions.
    """
    if min(n, d) < 1 or min(k, r) < 2:
        raise ValueError(f"n and d must be at least 1, k and r at least 2, got n = {n}, d = {d}, k = {k}, r = {r}")
    return {
        "Self-attention": self_attention(n, d),
        "Recurrent": recurrent(n, d),
        "Convolutional": convolutional(n, d, k),
        "Self-attention (restricted)": restricted(n, d, r),
    }


def operations_by_length(lengths: Sequence[int], d: int, k: int, r: int) -> dict[str, Array]:
    """Operations of the layers of `layer_costs`: n (length,), and operations (layer, length)."""
    costs = [layer_costs(n, d, k, r).values() for n in lengths]
    return {"n": np.array(lengths), "operations": np.array([[cost.operations for cost in row] for row in costs]).T}


def lstm_work(n: int, d: int) -> int:
    """Multiply-adds of an LSTM layer: four gates, each with a (d, d) matrix for the input and one for the state."""
    return 8 * n * d * d


def recurrent_path(first: int, second: int) -> list[Node]:
    """From state to state, one position at a time: second - first steps."""
    return [(0, position) for position in range(first, second + 1)]


def attention_path(first: int, second: int) -> list[Node]:
    """One step, whatever the distance."""
    return [(0, first), (1, second)]


def dilated_path(first: int, second: int, k: int) -> list[Node]:
    """Through dilated convolutions: layer i reads positions k^(i-1) apart, so the hops are the digits of the distance
    in base k, and ceil(log_k(distance + 1)) layers suffice. Kernels look back, as in a decoder."""
    nodes, distance, dilation = [(0, first)], second - first, 1
    while distance or len(nodes) == 1:
        distance, hop = divmod(distance, k)
        nodes.append((len(nodes), nodes[-1][1] + hop * dilation))
        dilation *= k
    return nodes


def contiguous_layers(first: int, second: int, k: int) -> int:
    """Layers of ordinary convolutions needed between two positions: each reaches k - 1 positions further back."""
    return max(-(-(second - first) // (k - 1)), 1)


def restricted_path(first: int, second: int, r: int) -> list[Node]:
    """Through attention to r neighbours centred on each position: each layer reaches r // 2 positions back."""
    nodes = [(0, first)]
    while nodes[-1][1] < second or len(nodes) == 1:
        nodes.append((len(nodes), min(nodes[-1][1] + r // 2, second)))
    return nodes


def paths(first: int, second: int, k: int, r: int) -> Mapping[str, list[Node]]:
    """The path of information from position `first` to a later one, `second`, in each kind of layer.

    Returns:
        name as in `layer_costs` -> nodes of the path, both ends included (one more than its steps).

    Raises:
        ValueError: the positions are not in order, or k or r is below 2 and connects no positions.
    """
    if not 0 <= first <= second or min(k, r) < 2:
        raise ValueError(f"needs 0 <= first <= second, k >= 2 and r >= 2, got {first}, {second}, k = {k}, r = {r}")
    return {
        "Self-attention": attention_path(first, second),
        "Recurrent": recurrent_path(first, second),
        "Convolutional": dilated_path(first, second, k),
        "Self-attention (restricted)": restricted_path(first, second, r),
    }


def windows(routes: Mapping[str, list[Node]], n: int, k: int, r: int) -> Mapping[str, list[list[int]]]:
    """What a position of each layer reads, as offsets from itself, in a sequence of length n; a recurrent layer, left
    out, reads its last state. The routes are from `paths`; they determine the number of layers."""
    layers = {name: len(nodes) - 1 for name, nodes in routes.items()}
    return {
        "Self-attention": [list(range(1 - n, n))],
        "Convolutional": [[-tap * k**i for tap in range(k)] for i in range(layers["Convolutional"])],
        "Self-attention (restricted)": [list(range(-(r // 2), r - r // 2))] * layers["Self-attention (restricted)"],
    }
