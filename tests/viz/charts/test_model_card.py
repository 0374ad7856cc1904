"""The figure of the model card shows the counts that it was given, and its marks where they belong."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from viz.charts.model_card import ATTENTION, COLOURS, amount, lengths_to_plot, percentages, work_chart

LENGTHS = np.arange(1, 41)
WORK = {name: LENGTHS ** (1 + (name == ATTENTION)) * (i + 3) for i, name in enumerate(COLOURS)}


def test_every_curve_is_the_counts_of_its_name() -> None:
    figure = work_chart(LENGTHS, WORK, 9, 30, 12.5)
    assert [trace.name for trace in figure.data] == list(WORK)
    for trace in figure.data:
        assert np.array_equal(trace.x, LENGTHS)
        assert np.array_equal(trace.y, WORK[trace.name])
        assert trace.line.color == COLOURS[trace.name]
    assert len(set(COLOURS.values())) == len(COLOURS)


@pytest.mark.parametrize("sentence", [1, 9, 30])
def test_three_lines_mark_the_sentence_the_longest_and_the_break_even(sentence: int) -> None:
    figure = work_chart(LENGTHS, WORK, sentence, 30, 12.5)
    assert (figure.layout.xaxis.type, figure.layout.yaxis.type) == ("log", "log")
    assert [line.x0 for line in figure.layout.shapes] == sorted([sentence, 30, 12.5])
    texts = {note.text: note.x for note in figure.layout.annotations}
    assert texts[f"your sentence: {sentence}"] == pytest.approx(math.log10(sentence))
    assert texts["longest: 30"] == pytest.approx(math.log10(30))
    assert texts["attention costs<br>as much: 12"] == pytest.approx(math.log10(12.5))


@given(st.floats(1, 1e5), st.integers(1, 5000))
def test_lengths_are_whole_grow_and_pass_all_marks(even: float, longest: int) -> None:
    lengths = lengths_to_plot(1, longest, even)
    assert lengths[0] == 1
    assert (np.diff(lengths) > 0).all()
    assert lengths[-1] > max(longest, even)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (7, "7"), (999, "999"), (2_349_056, "2.35 M"), (63_082_496, "63.1 M"), (999_999, "1 M"), (4e9, "4 G")],
)
def test_an_amount_has_three_digits_and_its_unit(value: float, text: str) -> None:
    assert amount(value) == text


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=8))
def test_shares_are_of_the_whole(values: list[int]) -> None:
    assert sum(float(share.removesuffix(" %")) for share in percentages(values)) == pytest.approx(100, abs=0.41)
