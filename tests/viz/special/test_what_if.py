"""Before, after and difference as they are drawn: the two runs' own numbers, one range, and no markup from tokens."""

import numpy as np
import pytest

from model.analysis.runs.two_runs import largest_changes
from model.checkpoints.translator import Translator
from model.interventions import ForbidSource, MaskEdit
from model.trace import Trace
from viz.forms import Outcome, Scale
from viz.heatmap import row_names
from viz.html import word_diff
from viz.special.what_if import ChangeMaps, HeadMaps, candidate_change_bars
from viz.tokens import numbered

KINDS = {"encoder_self": "Encoder", "decoder_self": "Decoder", "cross": "Cross"}


@pytest.fixture(scope="module")
def changed(translator: Translator) -> Trace:
    changes = (ForbidSource((1,)), MaskEdit(((2, 0),), ((0, 3),), "decoder_self", 1))
    return translator.trace("a dog and a cat", "Ein Hund mit einer Katze.", interventions=changes)


def drawn(before: Trace, after: Trace, kind: str, edited: tuple = ()) -> tuple:
    one, other = (trace.attention(kind, 1) for trace in (before, after))
    rows = row_names(one.query_tokens, None if kind == "encoder_self" else before.next_tokens)
    keys = numbered(one.key_tokens)
    form = ChangeMaps(
        rows=rows,
        keys=keys,
        weights=(one.pattern[1], other.pattern[1]),
        masks=(one.mask[1], other.mask[1]),
        edited=edited,
        place=(kind, 1, 1),
    )
    figure = form.draw()
    maps = [heat for heat in figure.data if heat.type == "heatmap" and "masked" not in heat.hovertemplate]
    return form, figure, maps, one, other


def test_each_cell_of_the_first_map_can_be_hit_and_says_what_a_click_does(trace: Trace, changed: Trace) -> None:
    form, figure, _, one, _ = drawn(trace, changed, "decoder_self", edited=((2, 0), (0, 3), (99, 99)))
    points, crosses = (scatter for scatter in figure.data if scatter.type == "scatter")
    rows, columns = one.mask[1].shape
    assert len(points.x) == rows * columns
    assert (points.x[columns + 2], points.y[columns + 2]) == (points.x[2], points.y[columns])
    assert "allow" in points.customdata[1][3]
    assert "forbid" in points.customdata[columns][3]
    assert "undo" in points.customdata[2 * columns][3]
    assert len(crosses.x) == 2, "a cell that the sentence lacks is not drawn"
    # On a cell, and on the cross above it, a click chooses the same.
    for data in (points.customdata[2 * columns], crosses.customdata[1]):
        chosen = form.clicked({"customdata": data, "point_index": 0})
        assert (chosen["cell"], chosen["kind"], chosen["layer"], chosen["head"]) == ([2, 0, 3], "decoder_self", 1, 1)


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("Ein Hund rennt", "Ein Hund rennt", []),
        ("Ein Hund rennt", "Ein Katze rennt", ["<del>Hund</del>", "<ins>Katze</ins>"]),
        ("Ein Hund", "Ein <b>Hund</b>", ["<del>Hund</del>", "<ins>&lt;b&gt;Hund&lt;/b&gt;</ins>"]),
        ("", "Ein", ["<ins>Ein</ins>"]),
        ("Ein \u202e", "Ein", ["<del>U+202E</del>"]),
    ],
)
def test_a_word_diff_marks_what_went_and_what_came_as_text(before: str, after: str, found: list[str]) -> None:
    text = word_diff(before, after)
    assert all(part in text for part in found)
    assert text.count("<del>") + text.count("<ins>") == len(found)
    assert "<b>" not in text


def test_two_empty_sentences_say_so() -> None:
    assert "(nothing)" in word_diff("", "")


def test_candidates_end_with_the_rest_of_the_vocabulary() -> None:
    before, after = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.4, 0.5])
    figure = candidate_change_bars(["<b>", "x", "all 7 others"], before, after, written=1)
    assert [list(bar.x) for bar in figure.data] == [list(before), list(after), list(after - before)]
    assert figure.layout.yaxis.ticktext == ("-&lt;b&gt;", "<b>-x</b>", "all 7 others")


def of_heads(
    values: dict[str, np.ndarray], chosen: tuple[str, int, int], highest: float, **layers: list[int]
) -> HeadMaps:
    numbers = {kind: layers.get(kind, list(range(len(array)))) for kind, array in values.items()}
    scale = Scale(-highest, highest)
    return HeadMaps(values=values, layers=numbers, names=KINDS, chosen=chosen, what="change", scale=scale, unit=" nats")


def test_every_head_of_every_layer_has_its_cell_in_one_range_and_can_be_chosen(trace: Trace, changed: Trace) -> None:
    values = largest_changes(trace, changed)
    highest = max(float(array.max()) for array in values.values())
    form = of_heads(values, ("cross", 1, 2), highest)
    figure = form.draw()
    heats, points = ([t for t in figure.data if t.type == name] for name in ("heatmap", "scatter"))
    for (kind, array), heat, over in zip(values.items(), heats, points, strict=True):
        assert np.array_equal(heat.z, array)
        assert heat.coloraxis == "coloraxis"
        for x, y, data in zip(over.x, over.y, over.customdata, strict=True):
            assert form.clicked({"customdata": data}) == {"kind": kind, "layer": y, "head": x}
            assert float(data[3]) == pytest.approx(array[y, x])
    assert figure.layout.coloraxis.cmax == -figure.layout.coloraxis.cmin == highest
    (frame,) = figure.layout.shapes
    assert (frame.x0, frame.y0, frame.xref) == (1.5, 0.5, f"x{list(values).index('cross') + 1}")


@pytest.mark.parametrize("layers", [[0, 1], [1, 3], [2, 9]])
def test_layers_keep_their_numbers_where_only_some_have_the_kind_and_a_missing_head_has_no_point(layers) -> None:
    values = {"decoder_self": np.array([[1.0, -2.0], [0.5, np.nan]])}
    form = of_heads(values, ("decoder_self", layers[1], 0), 2.0, decoder_self=layers)
    figure = form.draw()
    assert [int(text) for text in figure.layout.yaxis.ticktext] == layers
    assert figure.layout.shapes[0].y0 == 0.5
    assert [tuple(data[1:3]) for data in figure.data[1].customdata] == [(layers[0], 0), (layers[0], 1), (layers[1], 0)]
    assert not of_heads(values, ("cross", 0, 0), 2.0).draw().layout.shapes, "another kind has no cell to frame"


@pytest.mark.parametrize(
    ("before", "after", "difference"), [(-2.0, -3.5, "−1.500"), (-1, -1, "+0.000"), (0, 2, "+2.000")]
)
def test_an_outcome_writes_both_numbers_and_their_difference(before: float, after: float, difference: str) -> None:
    outcome = Outcome("Title", "a", "b", {"log p before": before, "log p after": after})
    assert list(outcome.words().values()) == [f"{x:.3f}".replace("-", "−") for x in (before, after)] + [difference]
    assert {name: float(array) for name, array in outcome.arrays().items()} == {
        "log_p_before": before,
        "log_p_after": after,
    }


def test_what_is_no_number_is_said_to_be_none() -> None:
    words = Outcome("Title", "a", "b", {"right": -1.0, "wrong": float("nan")}).words()
    assert list(words.values()) == ["−1.000", "NaN", "NaN"]
