"""The tile in fast memory stands among all queries and keys, with its blocks beside and above it."""

import numpy as np
import pytest

from viz.forms import TALLEST
from viz.paper.page import Paper, draw
from viz.stack import thin
from viz.theme import CHOSEN
from viz.tiles import ACROSS, OUTPUT, QUERIES, SCORES, Tiles

NUMBERS = np.random.default_rng(0)


def tiles(rows: int, columns: int, step: int = 1) -> Tiles:
    """The first row of two tiles, the second of which is skipped in the next row."""
    q, k, v = (NUMBERS.normal(size=(count, 4)) for count in (rows, columns, columns))
    half, middle = rows // 2 or 1, columns // 2 or 1
    read = np.array([[0, half, 0, middle], [0, half, middle, columns], [half, rows, 0, middle]])
    m = np.where(np.arange(rows) < half, 2.5, -np.inf)
    names = [f"{at} <i>reads → predicts" for at in range(max(rows, columns))]
    skipped = np.array([[half, rows, middle, columns]])
    return Tiles(names[:rows], names[:columns], q, k, v, q @ k.T, m, 1.0 * (m > 0), q * 0, 3.0, read, skipped, step)


def test_what_is_in_fast_memory_is_framed_in_every_panel() -> None:
    figure = tiles(4, 6).draw()
    frames = {shape.xref: shape for shape in figure.layout.shapes if shape.line.color == CHOSEN}
    assert {*frames} == {"x", "x2", "x3", "x4", "x5", "x6", "x7"}
    for name in ("x", "x4", "x5", "x6", "x7"):
        assert (frames[name].y0, frames[name].y1) == (-0.5, 1.5)
    for name in ("x", "x2", "x3"):
        assert (frames[name].x0, frames[name].x1) == (2.5, 5.5)
    fills = [shape.fillcolor for shape in figure.layout.shapes if shape.fillcolor]
    assert len(fills) == 1, "one tile was read before"
    assert [shape.type for shape in figure.layout.shapes].count("line") == 1, "one tile is skipped"


@pytest.mark.parametrize("count", [1, 5, 46])
def test_rows_and_columns_of_all_panels_are_those_of_the_scores_and_the_whole_fits_a_screen(count: int) -> None:
    layout = tiles(count, count, step=0).draw().layout
    assert layout.height <= TALLEST
    for panel in (QUERIES, OUTPUT):
        other = layout[f"yaxis{panel}"]
        assert (other.domain, other.range) == (layout.yaxis.domain, layout.yaxis.range)
    assert layout.xaxis2.domain == layout.xaxis3.domain == layout.xaxis.domain == ACROSS[SCORES]
    assert len(layout.yaxis4.ticktext) * 14 <= max(110, 15 * count)
    assert "→" not in layout.yaxis4.ticktext[0]
    assert layout.yaxis4.ticktext[0].startswith("0 &lt;i&gt;reads")


def test_few_rows_have_their_numbers_and_what_has_read_no_key_is_empty() -> None:
    few, many = ({one.xaxis: one for one in tiles(count, 4).draw().data} for count in (4, 40))
    assert [*few["x5"].text[0]] == ["2.5"]
    assert few["x6"].text == ("1.00", "1.00", "0.00", "0.00")
    assert np.isnan(np.array(few["x5"].z, float)[2:]).all()
    assert many["x5"].text is many["x6"].text is None


def test_a_phone_has_fewer_keys_below_the_scores_and_paper_keeps_the_panels_together() -> None:
    picture = tiles(30, 30)
    assert len(thin(picture.draw()).to_dict()["layout"]["xaxis"]["ticktext"]) <= 7
    places = [axes.get_subplotspec() for axes in draw(picture.draw(), Paper(columns=1), "Tiles").axes[:7]]
    values, keys, _, scores, *_ = places
    assert values.colspan == keys.colspan == scores.colspan
    assert len({place.rowspan for place in places[2:]}) == 1, "Q, S, m, ℓ and O stand beside each other"
    assert {*picture.arrays()} == {"q", "k", "v"}
