"""Heads switched off, and a forced prefix, in Chromium: clicks and words reach the model."""

import re
from urllib.parse import parse_qs, urlencode, urlsplit

import numpy as np
import pytest

from model.analysis.heads.head_importance import head_scores
from model.checkpoints.translator import Translator
from tests.browser.conftest import Visitor

SOURCE, TEXT = "a dog and a cat", "Ein Hund mit einer Katze."


def visit(server: str, visitor: Visitor, page: str = "what_if", **query: str) -> None:
    visitor.visit(f"{server}/{page}?{urlencode({'source': SOURCE, 'target': 'Typed', 'typed': TEXT} | query)}")


def click_in(visitor: Visitor, plot: str, x: float, y: float) -> None:
    """Click into the first panel of a plot; (0, 0) is its top left, (1, 1) its bottom right."""
    area = visitor.page.locator(f"{plot} .nsewdrag").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    place = box["x"] + x * box["width"], box["y"] + y * box["height"]
    visitor.page.mouse.move(*place)
    visitor.page.mouse.click(*place)


def test_a_click_on_a_cell_of_the_map_chooses_its_head(server: str, visitor: Visitor, translator: Translator) -> None:
    visit(server, visitor, part="Which heads matter", kind="Cross")
    with visitor.rerun():
        visitor.page.get_by_role("button", name="Switch off each head").click()
    plot = visitor.page.locator(".st-key-what_if-maps-of-heads .js-plotly-plot")
    drawn = plot.evaluate("plot => Array.from(plot._fullData[0].z, row => Array.from(row))")
    trace = translator.trace(SOURCE, TEXT)
    *_, (_, right) = head_scores(translator, [trace], "cross")
    assert np.array(drawn) == pytest.approx(right.change, abs=1e-4)
    click_in(visitor, ".st-key-what_if-maps-of-heads", 2.5 / 4, 1.5 / 2)
    visitor.page.wait_for_url(re.compile("layer=1"))
    visitor.settle()
    asked = parse_qs(urlsplit(visitor.page.url).query)
    assert (asked["layer"], asked["head"]) == (["1"], ["2"])


def test_an_alternative_is_forced_by_a_click_and_a_typed_word_after_it(
    server: str, visitor: Visitor, translator: Translator
) -> None:
    visit(server, visitor, part="Force a prefix", prefix_at="2")
    trace = translator.trace(SOURCE, TEXT)
    rank, other = next(
        (rank, c.id) for rank, c in enumerate(trace.candidates[2]) if c.id not in (*range(4), trace.next_ids[2])
    )
    bars = visitor.page.locator("[class*=st-key-what_if-alternatives] .js-plotly-plot")
    assert bars.evaluate("plot => plot._fullData[0].x[0]") == pytest.approx(
        trace.candidates[2][0].probability, abs=1e-5
    )
    click_in(
        visitor,
        "[class*=st-key-what_if-alternatives]",
        0.5,
        (rank + 0.5) / bars.evaluate("plot => plot._fullData[0].x.length"),
    )
    visitor.page.wait_for_url(re.compile("prefix=[0-9]"))
    visitor.settle()
    wanted = "-".join(map(str, (*trace.next_ids[:2], other)))
    assert parse_qs(urlsplit(visitor.page.url).query)["prefix"] == [wanted]
    assert visitor.page.get_by_role("list", name="Forced").get_by_role("listitem").count() == 3
    word = visitor.page.get_by_role("combobox", name="Replace it by")
    word.fill("Rüssel")
    with visitor.rerun():
        word.press("Enter")
    visitor.page.get_by_role("button", name="Force", exact=True).click()
    typed = "-".join(map(str, translator.tokenizer.encode("Rüssel")))
    visitor.page.wait_for_url(re.compile(f"prefix={wanted}-{typed}"))
    visitor.settle()
