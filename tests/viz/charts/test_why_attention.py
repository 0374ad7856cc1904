"""Table 1 as drawn: the lines, marks and cells are the numbers that they were given."""

import numpy as np
import pytest

from viz.charts.why_attention import (
    LOOKS,
    MOST_EDGES,
    ORDERS,
    compare_costs,
    layer_cost_table,
    operations_chart,
    path_chart,
    path_length,
    receptive_edges,
)

LENGTHS = np.array([1, 10, 100])
CURVES = {name: LENGTHS * 10 ** (3 + i) for i, name in enumerate(LOOKS)}
HERE = {name: 7 * 10**i for i, name in enumerate(LOOKS)}
COSTS = {name: (10 * i, i, 1.5 * i) for i, name in enumerate(LOOKS, start=1)}
WAYS = {
    "Self-attention": [(0, 0), (1, 3)],
    "Recurrent": [(0, 0), (0, 1), (0, 2), (0, 3)],
    "Convolutional": [(0, 0), (1, 1), (2, 3)],
    "Self-attention (restricted)": [(0, 0), (1, 2), (2, 3)],
}
READS = {
    "Self-attention": [[-3, -2, -1, 0, 1, 2, 3]],
    "Convolutional": [[0, -1], [0, -2]],
    "Self-attention (restricted)": [[-2, -1, 0, 1], [-2, -1, 0, 1]],
}


def test_lines_and_marks_are_the_numbers_given() -> None:
    figure = operations_chart(LENGTHS, CURVES, HERE, 5, 40)
    for i, name in enumerate(LOOKS):
        line, mark = figure.data[2 * i : 2 * i + 2]
        assert line.name == name
        assert np.array_equal(line.x, LENGTHS)
        assert np.array_equal(line.y, CURVES[name])
        assert (list(mark.x), list(mark.y)) == ([5], [HERE[name]])
        assert name in line.hovertemplate
        assert line.hovertemplate == mark.hovertemplate


def test_the_crossing_stands_where_both_formulas_meet() -> None:
    circle = operations_chart(LENGTHS, CURVES, HERE, 5, 40).data[-1]
    assert (list(circle.x), list(circle.y)) == ([40], [40**3])


def test_kinds_of_layer_are_told_apart_without_colour() -> None:
    assert len({stroke for _, stroke in LOOKS.values()}) == len({colour for colour, _ in LOOKS.values()}) == len(LOOKS)


@pytest.mark.parametrize(("n", "d"), [(1, 32), (32, 32), (256, 512), (400, 32)])
def test_marks_lie_inside_the_axis(n: int, d: int) -> None:
    lengths = np.unique(np.geomspace(1, 4 * max(n, d), 50).round().astype(int))
    figure = operations_chart(lengths, dict.fromkeys(LOOKS, lengths), HERE, n, d)
    low, high = figure.layout.xaxis.range
    assert all(low <= note.x <= high for note in figure.layout.annotations)


def test_the_table_has_formula_and_number_side_by_side() -> None:
    found = layer_cost_table(COSTS)
    assert list(found["layer"]) == list(ORDERS)
    assert list(found["complexity per layer"]) == [orders[0] for orders in ORDERS.values()]
    assert list(found["operations here"]) == [10, 20, 30, 40]
    assert list(found["sequential here"]) == [1, 2, 3, 4]
    assert list(found["path here"]) == [1.5, 3.0, 4.5, 6.0]


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        (10, 25, "2.5 times fewer operations than"),
        (25, 10, "2.5 times more operations than"),
        (7, 7, "as many operations as"),
    ],
)
def test_costs_are_compared_in_words(ours: int, theirs: int, said: str) -> None:
    assert compare_costs(ours, theirs) == said


def test_each_panel_draws_its_way_bold_and_all_tokens_below() -> None:
    figure = path_chart(["▁a", "▁<b>", "▁c", "d"], WAYS, READS)
    for row, nodes in enumerate(WAYS.values()):
        _reads, way, grid, ends = figure.data[4 * row : 4 * row + 4]
        drawn = [(y, x) for y, x in zip(way.y, way.x, strict=True) if x is not None]
        assert drawn[0] == nodes[0]
        assert drawn[1::2] == nodes[1:]
        assert list(zip(ends.y, ends.x, strict=True)) == nodes
        assert {x for x, y in zip(grid.x, grid.y, strict=True) if y == 0} == set(range(4))
        assert "<b>" not in "".join(grid.customdata)
    assert all("<b>" not in text for text in figure.layout.xaxis4.ticktext)
    titles = [note.text for note in figure.layout.annotations]
    assert titles == [f"{name}: {path_length(len(nodes) - 1, name)}" for name, nodes in WAYS.items()]


def test_steps_are_counted_in_words() -> None:
    assert path_length(1, "Recurrent") == "1 step"
    assert path_length(14, "Recurrent") == "14 steps, one after another"
    assert path_length(1, "Convolutional") == "1 layer"
    assert path_length(2, "Convolutional") == "2 layers"


def test_a_cone_holds_what_the_end_can_read_and_nothing_beyond_the_sentence() -> None:
    edges = receptive_edges(READS["Convolutional"], (2, 3), 4)
    assert set(edges) == {
        ((2, 3), (1, 3)),
        ((2, 3), (1, 1)),
        ((1, 3), (0, 3)),
        ((1, 3), (0, 2)),
        ((1, 1), (0, 1)),
        ((1, 1), (0, 0)),
    }
    assert all(0 <= lower < 4 for _, (_, lower) in receptive_edges(READS["Self-attention (restricted)"], (2, 3), 4))


def test_a_long_sentence_keeps_the_figure_small() -> None:
    n = 130
    ways = {name: [(level, level) for level in range(n)] for name in WAYS}
    figure = path_chart(["▁a"] * n, ways, dict.fromkeys(WAYS, [list(range(-9, 9))] * (n - 1)))
    assert all(len(trace.x) <= 3 * MOST_EDGES for trace in figure.data)
    assert len(figure.layout.xaxis4.tickvals) <= 30
