"""The payload of the whole model holds each box's numbers, in order, and words that name only them."""

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest

from model.analysis.stream.whole_model import model_boxes
from tests.viz.payload import unpack
from viz.canvas.whole_model import MOST_CELLS, About, StackRow, Switched, pooled, whole_model

if TYPE_CHECKING:
    from model.checkpoints.translator import Translator
    from model.trace import Trace


def payload(boxes, rows) -> bytes:
    about = {
        box.name: About("What for.", "A page", {"opens": "a_page"}, dict.fromkeys(box.switches(), "{}"))
        for box in boxes
    }
    switched = Switched(-1.5, -2.0, {boxes[2].name: ["off"]}, ["{}"], {})
    chosen = boxes[2].name, {"encoder": 1}
    return whole_model(boxes, rows, chosen, title="t", about=about, switched=switched)


@pytest.fixture
def rows(trace: "Trace") -> list[StackRow]:
    return [StackRow(name, name, stream.tokens.labels) for name, stream in trace.streams.items()]


def test_the_values_and_heads_of_every_box_arrive(
    translator: "Translator", trace: "Trace", rows: list[StackRow]
) -> None:
    boxes = model_boxes(translator, trace)
    header, arrays = unpack(payload(boxes, rows))
    assert [box.name for box in boxes] == [box["name"] for box in header["boxes"]]
    for box, sent in zip(boxes, header["boxes"], strict=True):
        np.testing.assert_array_equal(arrays[f"{box.name}.values"], np.array(list(box.values.values()), "<f4"))
        assert (sent["heads"] is None) == (box.pattern is None)
        if sent["heads"]:
            assert sent["heads"]["array"] == f"{sent['stack']}.layers.{sent['layer']}.{sent['part']}.pattern"
            np.testing.assert_allclose(arrays[sent["heads"]["array"]], box.pattern, atol=0.5 / 254 + 1e-6)
        used = {name for _, text in sent["words"] for name in re.findall(r"\{(\w+)", text)}
        assert used <= set(sent["values"]), sent["name"]
    assert header["off"] == {boxes[2].name: ["off"]}
    assert header["chosen"] == {"box": boxes[2].name, "positions": {"encoder": 1}}


def test_of_many_tokens_a_cell_is_the_largest_weight_of_its_block_and_masked_only_if_all_are() -> None:
    pattern = np.random.default_rng(0).random((2, 61, 50))
    pattern[:, ~np.tri(61, 50, dtype=bool)] = np.nan
    small = pooled(pattern)
    assert small.shape == (2, MOST_CELLS, MOST_CELLS)
    edges = [np.arange(MOST_CELLS + 1) * size // MOST_CELLS for size in (61, 50)]
    for row in range(MOST_CELLS):
        for column in range(MOST_CELLS):
            block = pattern[0, edges[0][row] : edges[0][row + 1], edges[1][column] : edges[1][column + 1]]
            expected = np.nan if np.isnan(block).all() else np.nanmax(block)
            np.testing.assert_equal(small[0, row, column], expected)
    few = pattern[:, :5, :3]
    np.testing.assert_array_equal(pooled(few), few)


def test_values_that_do_not_fit_the_tokens_are_refused(translator, trace, rows) -> None:
    with pytest.raises(ValueError, match="values of shape"):
        payload(model_boxes(translator, trace), [StackRow(row.name, row.title, row.tokens[1:]) for row in rows])
