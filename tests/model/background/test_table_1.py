"""The terms of Table 1 (section 4) are the counts of the loops that they stand for."""

import itertools

import pytest

from model.background.layer_size import LayerSize
from model.background.table_1 import (
    contiguous_layers,
    convolutional,
    layer_costs,
    lstm_work,
    paths,
    recurrent,
    restricted,
    self_attention,
    windows,
)


@pytest.mark.parametrize(("n", "d"), list(itertools.product((1, 2, 5, 7), (1, 3, 4))))
def test_operations_are_a_product_for_each_pair_and_a_square_matrix_for_each_position_and_tap(n: int, d: int) -> None:
    assert self_attention(n, d).operations == n * n * d
    assert (recurrent(n, d).operations, recurrent(n, d).sequential) == (n * d * d, n)
    for k in (2, 3, 5, 50):
        assert convolutional(n, d, k).operations == n * k * d * d
        assert restricted(n, d, k).operations == n * min(k, n) * d


@pytest.mark.parametrize("r", [12, 13, 1000])
def test_attention_to_everybody_is_the_unrestricted_one(r: int) -> None:
    assert restricted(7, 4, r) == self_attention(7, 4)


@pytest.mark.parametrize(("n", "k", "r"), [(1, 2, 2), (2, 3, 8), (15, 3, 8), (100, 7, 64)])
def test_the_longest_path_of_the_table_is_the_one_from_the_first_position_to_the_last(n: int, k: int, r: int) -> None:
    steps = {name: len(nodes) - 1 for name, nodes in paths(0, n - 1, k, r).items()}
    assert {name: cost.path for name, cost in layer_costs(n, 4, k, r).items()} == steps


def test_work_of_whole_layers_is_the_sum_of_their_matrix_products() -> None:
    n, d, gates, size = 5, 3, 4, LayerSize(3, 1, 1, 3, 3)
    assert (
        size.projections(n, n) + size.products(n, n)
        == 2 * self_attention(n, d).operations + 4 * recurrent(n, d).operations
    )
    assert lstm_work(n, d) == gates * 2 * recurrent(n, d).operations


@pytest.mark.parametrize(("k", "r"), [(2, 2), (3, 8), (5, 3), (15, 64)])
@pytest.mark.parametrize("n", [2, 3, 9, 10, 100])
def test_every_hop_is_one_that_the_layer_can_read_and_no_way_is_shorter(n: int, k: int, r: int) -> None:
    ways = paths(0, n - 1, k, r)
    reads = windows(ways, n, k, r)
    for name, offsets in reads.items():
        nodes = ways[name]
        assert (nodes[0], nodes[-1]) == ((0, 0), (len(nodes) - 1, n - 1))
        for (level, here), (above, there) in itertools.pairwise(nodes):
            assert above == level + 1
            assert here - there in offsets[level]
        reachable = {n - 1}
        for level in range(len(offsets) - 2, -1, -1):
            reachable = {p + step for p in reachable for step in offsets[level] if 0 <= p + step < n}
        assert len(nodes) == 2 or 0 not in reachable
    assert len(ways["Recurrent"]) - 1 == n - 1
    assert len(ways["Self-attention"]) - 1 == 1


@pytest.mark.parametrize(("k", "n"), [(3, 27), (2, 8), (3, 28), (10, 100)])
def test_dilated_convolutions_join_the_ends_in_log_n_layers(k: int, n: int) -> None:
    layers = len(paths(0, n - 1, k, 8)["Convolutional"]) - 1
    assert k ** (layers - 1) < n <= k**layers


@pytest.mark.parametrize(("distance", "k", "layers"), [(0, 3, 1), (2, 3, 1), (3, 3, 2), (14, 3, 7), (14, 15, 1)])
def test_ordinary_convolutions_need_a_layer_for_each_kernel_on_the_way(distance: int, k: int, layers: int) -> None:
    assert contiguous_layers(0, distance, k) == layers


def test_a_word_reaches_itself() -> None:
    ways = paths(3, 3, 3, 8)
    assert {name: len(nodes) - 1 for name, nodes in ways.items()} == {
        "Self-attention": 1,
        "Recurrent": 0,
        "Convolutional": 1,
        "Self-attention (restricted)": 1,
    }


@pytest.mark.parametrize("sizes", [(0, 4, 3, 8), (4, 0, 3, 8), (4, 4, 1, 8), (4, 4, 3, 0)])
def test_sizes_that_no_layer_has_are_refused(sizes: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="must be at least"):
        layer_costs(*sizes)


@pytest.mark.parametrize("ends", [(2, 1, 3, 8), (0, 4, 1, 8), (0, 4, 3, 1), (-1, 4, 3, 8)])
def test_ways_that_lead_nowhere_are_refused(ends: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="needs 0 <= first"):
        paths(*ends)
