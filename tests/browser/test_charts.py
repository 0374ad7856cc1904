"""Plotly's charts in Chromium: what the pointer is told, and what a click on a cell, a bar or a point chooses."""

from urllib.parse import urlencode

import numpy as np
import pytest

from model.analysis.heads.head_importance import head_scores
from model.analysis.stream.residual_stream import measure_stream
from model.checkpoints.translator import Translator
from model.interventions import MaskEdit
from model.interventions.link import decode, encode
from tests.browser.conftest import Visitor, query, read_maps, wait_for_query_to_have

SENTENCE = {"source": "a dog and a cat", "target": "Typed", "typed": "Ein Hund mit einer Katze."}
PATH = ".st-key-layer_by_layer-path"
TABLE = ".st-key-positional_encoding-table"
SIDES = ".st-key-side_by_side-maps"
CHANGES = "[class*=st-key-roomy-what_if-maps]"
HEADS = ".st-key-what_if-maps-of-heads"
ALTERNATIVES = "[class*=st-key-what_if-alternatives]"


def visit(visitor: Visitor, server: str, page: str, **asked: str) -> None:
    visitor.visit(f"{server}/{page}?{urlencode(SENTENCE | asked)}")


def said_at(visitor: Visitor, chart: str, across: float, down: float, panel: int = 0) -> str:
    """What the chart says with the pointer there; (0, 0) is the top left of the panel, (1, 1) its bottom right."""
    area = visitor.page.locator(f"{chart} .nsewdrag").nth(panel)
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    hover = visitor.page.locator(f"{chart} .hoverlayer .hovertext").first
    # What was said elsewhere is gone before; Plotly asks where the pointer is as it moves.
    visitor.page.mouse.move(0, 0)
    hover.wait_for(state="detached")
    for aside in (1, 0):
        area.hover(position={"x": across * box["width"] + aside, "y": down * box["height"]})
    hover.wait_for()
    return hover.text_content().replace("−", "-")


def click(visitor: Visitor, chart: str, across: float, down: float, panel: int = 0) -> None:
    said_at(visitor, chart, across, down, panel)
    visitor.page.mouse.down()
    visitor.page.mouse.up()


def test_the_pointer_is_told_the_numbers_of_the_cell_below_it(
    server: str, visitor: Visitor, translator: Translator
) -> None:
    trace = translator.trace(SENTENCE["source"], SENTENCE["typed"])
    visit(visitor, server, "layer_by_layer")
    shown = said_at(visitor, PATH, 2.7 / 7, 2.5 / len(trace.tgt_tokens), panel=2)
    to_start = measure_stream(trace, "decoder").to_start[2, 2]
    assert float(shown.split("input ")[1].split("token")[0]) == pytest.approx(to_start, abs=1e-4)

    visit(visitor, server, "positional_encoding", part="The encoding", dimensions="32")
    row, pair = 20, 2
    for half, function in enumerate(("sin", "cos")):
        shown = said_at(visitor, TABLE, (pair + 0.5) / 16, (row + 0.5) / 64, half)
        column = 2 * pair + half
        assert f"position {row}, dimension {column} (pair {pair}){function}(pos / 10000" in shown
        expected = float(translator.positional_encoding()[row, column])
        assert float(shown.split("position")[0]) == pytest.approx(expected, rel=1e-6)

    visit(visitor, server, "side_by_side", layer="1", head="2")
    size = len(trace.src_tokens)
    shown = said_at(visitor, SIDES, 1.5 / size, 2.5 / size)
    left, right = trace.attention("encoder_self", 1).pattern[2:4, 2, 1]
    for words in (f"left {left:.5f}"[:9], f"right {right:.5f}"[:10], "right - left"):
        assert words in shown


def test_a_click_on_a_cell_chooses_its_token_and_its_step(
    server: str, visitor: Visitor, translator: Translator
) -> None:
    """From a link that the address keeps."""
    asked = SENTENCE | {"layers_step": "1 cross-attention"}
    visit(visitor, server, "layer_by_layer", **asked)
    assert query(visitor) == asked
    trace = translator.trace(SENTENCE["source"], SENTENCE["typed"])
    click(visitor, PATH, 2.7 / 7, 2.5 / len(trace.tgt_tokens), panel=2)
    wait_for_query_to_have(visitor, layers_step="0 cross-attention")
    assert query(visitor)["layers_token"].startswith("2 ")


def test_a_click_on_a_cell_of_the_map_chooses_its_head(server: str, visitor: Visitor, translator: Translator) -> None:
    visit(visitor, server, "what_if", part="Which heads matter", kind="Cross")
    with visitor.rerun():
        visitor.page.get_by_role("button", name="Switch off each head").click()
    *_, (_, right) = head_scores(translator, [translator.trace(SENTENCE["source"], SENTENCE["typed"])], "cross")
    assert read_maps(visitor, HEADS)[0] == pytest.approx(right.change, abs=1e-4)
    click(visitor, HEADS, 2.5 / 4, 1.5 / 2)
    wait_for_query_to_have(visitor, layer="1", head="2")


def test_an_alternative_is_forced_by_a_click_and_a_typed_word_after_it(
    server: str, visitor: Visitor, translator: Translator
) -> None:
    visit(visitor, server, "what_if", part="Force a prefix", prefix_at="2")
    trace = translator.trace(SENTENCE["source"], SENTENCE["typed"])
    rank, other = next(
        (rank, c.id) for rank, c in enumerate(trace.candidates[2]) if c.id not in (*range(4), trace.next_ids[2])
    )
    bars = visitor.page.locator(f"{ALTERNATIVES} .js-plotly-plot").evaluate("plot => plot._fullData[0].x.length")
    click(visitor, ALTERNATIVES, 0.5, (rank + 0.5) / bars)
    forced = "-".join(map(str, (*trace.next_ids[:2], other)))
    wait_for_query_to_have(visitor, prefix=forced)
    assert visitor.page.get_by_role("list", name="Forced").get_by_role("listitem").count() == 3
    word = visitor.page.get_by_role("combobox", name="Replace it by")
    word.fill("Rüssel")
    with visitor.rerun():
        word.press("Enter")
    visitor.page.get_by_role("button", name="Force", exact=True).click()
    visitor.page.wait_for_function(
        "forced => new URLSearchParams(location.search).get('prefix').startsWith(forced)",
        arg="-".join(map(str, (forced, *translator.tokenizer.encode("Rüssel")))),
    )
    visitor.settle()


def test_a_click_forbids_a_cell_and_the_model_runs_again(server: str, visitor: Visitor, translator: Translator) -> None:
    visit(visitor, server, "what_if", layer="1", head="2", changes="[]")
    before, _, difference = read_maps(visitor, CHANGES)
    assert not difference.any()
    rows, columns = before.shape

    def click_cell(query: int, key: int, changes: str) -> None:
        """Of the first map; the link has these changes then."""
        click(visitor, CHANGES, (key + 0.5) / columns, (query + 0.5) / rows)
        wait_for_query_to_have(visitor, changes=encode(decode(changes)) if changes else "[]")

    click_cell(2, 1, "mask:2-1:@encoder_self.1.2")
    change = MaskEdit(((2, 1),), kind="encoder_self", layer=1, head=2)
    changed = translator.trace(SENTENCE["source"], SENTENCE["typed"], interventions=(change,))
    seen = changed.attention("encoder_self", 1)
    before, after, difference = read_maps(visitor, CHANGES)
    assert np.array_equal(np.isnan(after), ~seen.mask[2])
    assert np.nan_to_num(after) == pytest.approx(seen.pattern[2], abs=1e-5)
    assert difference == pytest.approx(np.nan_to_num(after) - before, abs=1e-6)
    click_cell(0, 0, "mask:2-1,0-0:@encoder_self.1.2")
    click_cell(2, 1, "mask:0-0:@encoder_self.1.2")
    click_cell(0, 0, "")
    # The maps of an earlier list come back, and the clicks that were made in them do not count again.
    visitor.page.get_by_role("button", name="Undo").click()
    wait_for_query_to_have(visitor, changes=encode(decode("mask:0-0:@encoder_self.1.2")))
    visitor.page.get_by_role("button", name="No changes").click()
    wait_for_query_to_have(visitor, changes="[]")
    click_cell(0, 0, "mask:0-0:@encoder_self.1.2")


DRAWN = """() => [...document.querySelectorAll("[data-testid=stMain] .js-plotly-plot")]
    .filter((node) => node.checkVisibility())
    .map((node) => node.querySelector(".main-svg")?.getBoundingClientRect())
    .map((box) => Boolean(box && box.width > 200 && box.height > 50))"""
"""of each chart in sight, whether it is there with a size"""


@pytest.mark.parametrize("page", ["layer_by_layer", "positional_encoding"])
def test_every_chart_of_every_tab_is_drawn(page: str, server: str, visitor: Visitor) -> None:
    visit(visitor, server, page)
    drawn: list[bool] = []
    tabs = visitor.page.locator("[data-testid=stMain] .stTabs").first.get_by_role("tab")
    for tab in tabs.all():
        tab.click()
        visitor.settle()
        drawn += visitor.page.evaluate(DRAWN)
    assert len(drawn) >= 8
    assert all(drawn)
