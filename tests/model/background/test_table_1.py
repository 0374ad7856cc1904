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


def layer_work(n: int, d: int) -> int:
    """Of multi-head self-attention as wide as the model, with its projections."""
    size = LayerSize(d, 1, 1, d, d)
    return size.projections(n, n) + size.products(n, n)


SIZES = list(itertools.product((1, 2, 5, 7), (1, 3, 4)))


def test_self_attention_multiplies_each_query_with_each_key() -> None:
    for n, d in SIZES:
        counted = sum(1 for _query in range(n) for _key in range(n) for _ in range(d))
        assert self_attention(n, d).operations == counted, (n, d)


def test_recurrence_applies_a_square_matrix_at_each_position_in_turn() -> None:
    for n, d in SIZES:
        cost = recurrent(n, d)
        counted = sum(1 for _position in range(n) for _row in range(d) for _column in range(d))
        assert (cost.operations, cost.sequential) == (counted, n), (n, d)


def test_a_convolution_applies_a_square_matrix_at_each_tap() -> None:
    for (n, d), k in itertools.product(SIZES, (2, 3, 5)):
        counted = sum(1 for _position in range(n) for _tap in range(k) for _row in range(d) for _column in range(d))
        assert convolutional(n, d, k).operations == counted, (n, d, k)


def test_restricted_attention_looks_at_its_neighbours_alone() -> None:
    for (n, d), r in itertools.product(SIZES, (2, 3, 50)):
        counted = sum(1 for _query in range(n) for _neighbour in range(min(r, n)) for _ in range(d))
        assert restricted(n, d, r).operations == counted, (n, d, r)


@pytest.mark.parametrize("r", [12, 13, 1000])
def test_attention_to_everybody_is_the_unrestricted_one(r: int) -> None:
    assert restricted(7, 4, r) == self_attention(7, 4)


@pytest.mark.parametrize(("n", "k", "r"), [(1, 2, 2), (2, 3, 8), (15, 3, 8), (100, 7, 64)])
def test_the_longest_path_of_the_table_is_the_one_from_the_first_position_to_the_last(n: int, k: int, r: int) -> None:
    steps = {name: len(nodes) - 1 for name, nodes in paths(0, n - 1, k, r).items()}
    assert {name: cost.path for name, cost in layer_costs(n, 4, k, r).items()} == steps


@pytest.mark.parametrize("d", [1, 32, 256, 512])
def test_self_attention_and_recurrence_cost_the_same_where_n_is_d_and_nowhere_else(d: int) -> None:
    for n in (1, d - 1, d, d + 1, 4 * d):
        if n > 0:
            ours, theirs = self_attention(n, d).operations, recurrent(n, d).operations
            assert (ours > theirs) - (ours < theirs) == (n > d) - (n < d)


@pytest.mark.parametrize("d", [4, 256])
def test_whole_layers_meet_at_twice_the_width(d: int) -> None:
    assert layer_work(2 * d, d) == lstm_work(2 * d, d)
    assert layer_work(2 * d - 1, d) < lstm_work(2 * d - 1, d)


def test_work_of_whole_layers_is_the_sum_of_their_matrix_products() -> None:
    n, d, gates = 5, 3, 4
    assert layer_work(n, d) == 2 * self_attention(n, d).operations + 4 * recurrent(n, d).operations
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
