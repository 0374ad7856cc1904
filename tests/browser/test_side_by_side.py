"""The page "Side by side" in Chromium: the two maps and their difference are the runs', and any cell tells both."""

from urllib.parse import urlencode

import numpy as np
import pytest

from model.analysis.heads.two_heads import join, piece_table
from model.checkpoints.translator import Translator
from tests.browser.conftest import Visitor

HERE = {"source": "a dog and a cat", "target": "Greedy", "layer": "1", "head": "2"}
MAPS = ".st-key-side_by_side-maps .js-plotly-plot"
READ = """plot => ['x', 'x2', 'x3'].map(axis => plot._fullData
    .filter(trace => trace.xaxis === axis && trace.coloraxis)
    .map(trace => Array.from(trace.z, row => Array.from(row, value => Number.isFinite(value) ? value : null)))
    .reduce((one, other) => one.map((row, i) => row.map((value, j) => value ?? other[i][j]))))"""


def page(server: str, **query: str) -> str:
    return f"{server}/side_by_side?{urlencode({**HERE, **query})}"


def maps(visitor: Visitor) -> list[np.ndarray]:
    """Left, right and difference, as they are drawn; not a number where a cell has no colour."""
    # The figure of the run before goes when the new one stands.
    visitor.page.wait_for_function("where => document.querySelectorAll(where).length === 1", arg=MAPS)
    return [np.array(z, dtype=float) for z in visitor.page.locator(MAPS).evaluate(READ)]


def test_a_cell_under_the_pointer_tells_both_weights_and_another_sentence_is_typed_and_reset(
    server: str, visitor: Visitor, translator: Translator
) -> None:
    visitor.visit(page(server))
    pattern = translator.trace(HERE["source"], beam_size=1).attention("encoder_self", 1).pattern
    left, right, difference = maps(visitor)
    assert left == pytest.approx(pattern[2], abs=1e-5)
    assert right == pytest.approx(pattern[3], abs=1e-5)
    assert difference == pytest.approx(right - left, abs=1e-6)
    plot = visitor.page.locator(f"{MAPS} .nsewdrag").first
    box = plot.bounding_box()
    size = len(left)
    plot.hover(position={"x": 1.5 * box["width"] / size, "y": 2.5 * box["height"] / size})
    text = visitor.page.locator(f"{MAPS} .hoverlayer .hovertext").first.text_content()
    assert f"left {left[2, 1]:.5f}"[:9] in text
    assert "right " in text
    assert "right − left" in text
    visitor.page.get_by_role("radio", name="Sentences").click()
    visitor.page.wait_for_function("location.search.includes('side_mode=Sentences')")
    visitor.page.get_by_role("textbox", name="Sentence, right").fill("a dog and a ball")
    visitor.page.get_by_role("button", name="Run it").click()
    visitor.page.wait_for_function("location.search.includes('side_sentence=a+dog+and+a+ball')")
    # The address changes before the run begins.
    visitor.page.get_by_text("that only one side has").first.wait_for()
    visitor.settle()
    sides = [
        piece_table(translator.trace(text, beam_size=1).attention("encoder_self", 1), 2)
        for text in (HERE["source"], "a dog and a ball")
    ]
    joined = join(*sides)
    assert np.array_equal(np.isnan(maps(visitor)[2]), np.isnan(joined.difference))
    visitor.page.get_by_test_id("stSidebar").get_by_role("button", name="Reset").click()
    visitor.page.wait_for_function("!location.search.includes('side_')")
    visitor.settle()
