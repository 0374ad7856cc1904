"""Side by side as it is drawn: both sides' own numbers in one range, their difference, and why a cell is blank."""

import numpy as np

from model.analysis.heads.two_heads import Side, join, piece_table
from model.checkpoints.translator import Translator
from model.trace import Trace
from viz.heatmap import row_names
from viz.special.side_by_side import Panel, Shared, SideMaps, paired_names
from viz.tokens import numbered


def drawn_from(trace: Trace, kind: str, head: int) -> tuple[Panel, Side]:
    attention = trace.attention(kind, 1)
    rows = row_names(attention.query_tokens, None if kind == "encoder_self" else trace.next_tokens)
    side = piece_table(attention, head)
    return Panel(rows, numbered(attention.key_tokens), side.weights, side.mask), side


def compared(left: tuple[Panel, Side], right: tuple[Panel, Side]) -> tuple:
    shared = Shared(**vars(join(left[1], right[1])))
    return drawn(left[0], right[0], shared), shared


def drawn(left: Panel, right: Panel, shared: Shared | None, titles: tuple[str, str] = ("one", "<b>two</b>")):
    return SideMaps(left=left, right=right, shared=shared, titles=titles).draw()


def column(figure, number: int) -> np.ndarray:
    """The numbers with a colour in one map."""
    axis = "x" if number == 1 else f"x{number}"
    found = [heat for heat in figure.data if (heat.xaxis or "x") == axis and heat.coloraxis]
    return np.nanmax(np.stack([np.where(np.isnan(heat.z), -np.inf, heat.z) for heat in found]), axis=0)


def test_hovering_a_cell_gives_both_weights_and_their_difference(trace: Trace) -> None:
    left, right = (drawn_from(trace, "cross", head) for head in (0, 1))
    figure, _ = compared(left, right)
    first, second, third = (heat for heat in figure.data if heat.coloraxis)
    colours = figure.layout[first.coloraxis]
    assert (colours.cmin, colours.cmax) == (0, 1)
    one, other = left[0].weights, right[0].weights
    assert np.array_equal(first.customdata, np.stack([other, other - one], axis=-1))
    assert np.array_equal(second.customdata, np.stack([one, other - one], axis=-1))
    assert np.array_equal(third.customdata, np.stack([one, other], axis=-1))


def test_cells_that_one_sentence_lacks_are_blank_hatched_and_say_so(translator: Translator) -> None:
    left, right = (
        drawn_from(translator.trace(text, beam_size=1), "encoder_self", 1) for text in ("a dog and a cat", "a dog")
    )
    figure, shared = compared(left, right)
    assert np.isinf(column(figure, 3)).sum() == np.isnan(shared.difference).sum() > 0
    said = " ".join(heat.hovertemplate for heat in figure.data)
    assert "on the left only" in said
    assert "no such cell on the right" in said
    assert len(figure.layout.images) == 1
    assert any(name.startswith("− ") for name in figure.data[-1].y)


def test_where_nothing_can_be_compared_there_is_no_third_map(trace: Trace) -> None:
    left, right = drawn_from(trace, "cross", 0), drawn_from(trace, "encoder_self", 0)
    figure = drawn(left[0], right[0], None)
    assert {heat.xaxis for heat in figure.data} == {"x", "x2"}


def test_arrays_and_table_hold_the_numbers_that_they_get() -> None:
    panels = [Panel(["0 a", "1 b"], ["0 c"], np.array([[1.0], [1.0]]), np.ones((2, 1), dtype=bool))] * 2
    rows = [(0, 0), (1, None), (None, 1)]
    shared = Shared(rows, [(0, 0)], np.array([[0.0], [np.nan], [np.nan]]), np.array([0.25, np.nan, np.nan]))
    maps = SideMaps(left=panels[0], right=panels[1], shared=shared, titles=("one", "two"))
    table, arrays = maps.table(), maps.arrays()
    assert list(table["query"]) == ["0 a", "− 1 b", "+ 1 b"] == paired_names(rows, panels[0].rows, panels[1].rows)
    assert table["left"].isna().tolist() == [False, False, True]
    assert table["total variation distance of the query"].tolist()[0] == 0.25
    assert arrays["joined_rows"].tolist() == [[0, 0], [1, -1], [-1, 1]]
    assert arrays["right"] is panels[1].weights
    assert arrays["difference"] is shared.difference
