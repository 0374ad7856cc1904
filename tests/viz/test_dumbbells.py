"""Dumbbells join the number before with the one after, and their colour says the direction."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from viz.dumbbells import LOWERS, RAISES, Dumbbells
from viz.paper.page import Paper, draw

PAIRS = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=40)


def dumbbells(pairs: list[tuple[float, float]]) -> Dumbbells:
    before, after = np.array(pairs, dtype=float).T
    return Dumbbells([f"<b>{place}" for place in range(len(pairs))], before, after, ("token", "its probability"))


@given(PAIRS)
def test_each_line_leads_from_the_number_before_to_the_one_after_in_the_colour_of_its_direction(
    pairs: list[tuple[float, float]],
) -> None:
    raised, lowered, before, after = dumbbells(pairs).draw().data
    joined = {}
    for trace, colour in ((raised, RAISES), (lowered, LOWERS)):
        assert trace.line.color == colour
        for place, start, end in zip(trace.x[::3], trace.y[::3], trace.y[1::3], strict=True):
            joined[place] = (start, end, colour)
    assert [joined[place][:2] for place in range(len(pairs))] == pairs
    for (one, other), colour, (*_, line) in zip(
        pairs, after.marker.color, map(joined.get, range(len(pairs))), strict=True
    ):
        assert colour == line == (RAISES if other >= one else LOWERS)
    assert [*zip(before.y, after.y, strict=True)] == pairs


def test_hovering_says_both_numbers_and_the_difference_and_names_are_text() -> None:
    *_, after = dumbbells([(0.25, 0.125)]).draw().data
    assert [*after.customdata[0]] == ["&lt;b&gt;0", "0.250000", "0.125000", "−0.125000"]
    assert all(f"%{{customdata[{place}]}}" in after.hovertemplate for place in range(4))


def test_the_numbers_are_exported_with_their_difference_and_drawn_on_paper() -> None:
    picture = dumbbells([(0.5, 0.25), (0.0, 1.0)])
    assert {name: values.tolist() for name, values in picture.arrays().items()} == {
        "before": [0.5, 0.0],
        "after": [0.25, 1.0],
        "difference": [-0.25, 1.0],
    }
    assert draw(picture.draw(), Paper(), "Before and after")
