"""The page "What if" in Chromium: a click on a cell changes the run."""

from urllib.parse import urlencode

import numpy as np
import pytest

from model.checkpoints.translator import Translator
from model.interventions import MaskEdit
from model.interventions.link import decode, encode
from tests.browser.conftest import Visitor

HERE = {"source": "a dog and a cat", "target": "Greedy", "layer": "1", "head": "2"}
ADDRESS = {"kind": "encoder_self", "layer": 1, "head": 2}
MAPS = "[class*=st-key-roomy-what_if-maps] .js-plotly-plot"
READ = """plot => plot._fullData
    .filter(trace => trace.type === 'heatmap' && !trace.hovertemplate.startsWith('masked'))
    .map(trace => Array.from(trace.z, row => Array.from(row, value => Number.isFinite(value) ? value : null)))"""


def page(server: str, **query: str) -> str:
    return f"{server}/what_if?{urlencode({**HERE, 'changes': '[]', **query})}"


def maps(visitor: Visitor) -> list[np.ndarray]:
    """Before, after and difference, as they are drawn; not a number where a cell has no colour."""
    return [np.array(z, dtype=float) for z in visitor.page.locator(MAPS).evaluate(READ)]


def click(visitor: Visitor, cell: tuple[int, int], expected: str) -> None:
    """Click on a cell of the first map, and wait for the link that follows."""
    rows, columns = maps(visitor)[0].shape
    plot = visitor.page.locator(f"{MAPS} .nsewdrag").first
    box = plot.bounding_box()
    place = {"x": (cell[1] + 0.5) * box["width"] / columns, "y": (cell[0] + 0.5) * box["height"] / rows}
    plot.hover(position=place)
    visitor.page.locator(f"{MAPS} .hoverlayer .hovertext", has_text="click to").first.wait_for()
    plot.click(position=place)
    visitor.page.wait_for_function(
        "found => (new URLSearchParams(location.search).get('changes') || '') === found", arg=expected
    )
    visitor.settle()


def test_a_click_forbids_a_cell_and_the_model_runs_again(server: str, visitor: Visitor, translator: Translator) -> None:
    visitor.visit(page(server))
    assert not maps(visitor)[2].any()
    click(visitor, (2, 1), encode(decode("mask:2-1:@encoder_self.1.2")))
    trace = translator.trace(HERE["source"], beam_size=1)
    changed = translator.trace(HERE["source"], interventions=(MaskEdit(((2, 1),), **ADDRESS),), beam_size=1)
    before, after, difference = maps(visitor)
    assert before == pytest.approx(trace.attention("encoder_self", 1).pattern[2], abs=1e-5)
    seen = changed.attention("encoder_self", 1)
    assert np.array_equal(np.isnan(after), ~seen.mask[2])
    assert np.nan_to_num(after) == pytest.approx(seen.pattern[2], abs=1e-5)
    assert difference == pytest.approx(np.nan_to_num(after) - before, abs=1e-6)
    click(visitor, (0, 0), encode(decode("mask:2-1,0-0:@encoder_self.1.2")))
    click(visitor, (2, 1), encode(decode("mask:0-0:@encoder_self.1.2")))
    click(visitor, (0, 0), "[]")
    assert not maps(visitor)[2].any()
    visitor.page.get_by_role("button", name="Undo").click()
    visitor.page.wait_for_function("location.search.includes('changes=')")
