"""Paths between two tokens: each panel draws the nodes that it was given."""

import numpy as np

from viz.special.recurrence import Schedule
from viz.special.why_attention import LOOKS, MOST_EDGES, path_chart, path_length, receptive_edges

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


def test_a_transformer_has_read_after_a_step_a_layer_and_a_recurrent_model_after_one_a_token() -> None:
    states = np.zeros((3, 4, 8))  # of the Transformer: its input, and two layers
    for one_by_one, read in ((False, 2), (True, 4)):
        model = Schedule("", "abcd", "dcba", states, states, None, one_by_one, 1.0)
        assert (model.reading_steps, model.steps) == (read, read + 4)
        assert model.in_words(read + 1) == "writes d"


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


def test_kinds_of_layer_are_told_apart_without_colour() -> None:
    assert len({stroke for _, stroke in LOOKS.values()}) == len({colour for colour, _ in LOOKS.values()}) == len(LOOKS)
