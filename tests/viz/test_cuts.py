"""Cuts of one text: each has all of its pieces, in order, and what all share stands below one another."""

import html
import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from viz.cuts import Cut, blocks, cuts_html

TEXT = "abcdefghij"


@st.composite
def cuts(draws: st.DrawFn) -> Cut:
    """The text in pieces between any boundaries, some of which are empty."""
    inside = draws(st.lists(st.integers(0, len(TEXT)), max_size=8))
    ends = sorted([*inside, len(TEXT)])
    return [TEXT[start:end] or "</s>" for start, end in zip([0, *ends], ends, strict=False)], ends


def shared(some: list[Cut]) -> list[int]:
    return sorted(set.intersection(*({0, *ends} for _, ends in some)))


@given(st.lists(cuts(), min_size=1, max_size=4))
def test_a_block_reaches_from_one_shared_boundary_to_the_next_and_no_piece_is_lost(some: list[Cut]) -> None:
    found = blocks(some)
    for row, (pieces, _) in enumerate(some):
        assert [chip.piece for block in found for chip in block.chips if chip.row == row] == [*pieces]
    texts = ["".join(c.piece for c in block.chips if c.row == 0 and c.piece != "</s>") for block in found]
    places = shared(some)
    assert [text for text in texts if text] == [TEXT[start:end] for start, end in pairwise(places)]


@given(st.lists(cuts(), min_size=2, max_size=4))
def test_in_a_block_pieces_stand_below_what_they_share_and_none_on_another(some: list[Cut]) -> None:
    for block in blocks(some):
        taken = [(chip.row, column) for chip in block.chips for column in chip.columns]
        assert len(taken) == len(set(taken))
        starts: dict[str, set[int]] = {}
        for chip in block.chips:
            if chip.piece != "</s>":
                starts.setdefault(chip.piece[0], set()).add(chip.columns.start)
        assert all(len(columns) == 1 for columns in starts.values())


@given(cuts())
def test_equal_cuts_differ_nowhere(cut: Cut) -> None:
    assert not any(block.differs for block in blocks([cut, cut, cut]))


def test_pieces_are_text_and_the_picture_has_a_name() -> None:
    written = cuts_html({"<i>": (["<b>", "x"], [3, 4]), "other": (["<b>x"], [4])}, "Cuts & pieces")
    assert re.search("<b>|<i>", written) is None
    assert html.unescape(written).count("<b>") == 2
    assert 'aria-label="Cuts &amp; pieces"' in written
    assert written.count("differs>") == 1
