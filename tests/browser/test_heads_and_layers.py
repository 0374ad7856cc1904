"""The page on heads and layers in Chromium: clicks and rows that open a head, looks in the link, short and long."""

from urllib.parse import urlencode

import numpy as np
import pytest

from model.analysis.head_tables import norm_weighted
from model.checkpoints.translator import Translator
from tests.browser.conftest import Visitor, query

MAP = ".st-key-heads-map .js-plotly-plot"
SENTENCE = {"source": "a dog and a cat", "target": "Typed", "typed": "Ein Hund mit einer Katze."}
VALUES = "plot => Array.from(plot._fullData[0].z, row => Array.from(row, x => Number.isNaN(x) ? null : x))"


def page(server: str, **query: str) -> str:
    return f"{server}/heads_and_layers?{urlencode(query)}"


def drawn(visitor: Visitor) -> np.ndarray:
    """The numbers of the heat map as the browser holds them."""
    visitor.page.locator(MAP).wait_for()
    return np.array(visitor.page.locator(MAP).evaluate(VALUES), dtype=float)


def wait_for_query(visitor: Visitor, key: str, value: str) -> None:
    visitor.page.wait_for_function(
        "([key, value]) => new URLSearchParams(location.search).get(key) === value", arg=[key, value]
    )
    visitor.settle()


def test_the_keys_of_the_mosaic_open_a_head(server: str, visitor: Visitor, translator: Translator) -> None:
    visitor.visit(page(server, **SENTENCE))
    picture = visitor.page.get_by_role("application").first
    picture.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "Enter"):
        picture.press(key)
    wait_for_query(visitor, "head", "2")
    assert query(visitor)["layer"] == "1"
    visitor.page.locator("strong", has_text="layer 1, head 2").wait_for()
    expected = translator.trace(SENTENCE["source"], SENTENCE["typed"]).attention("encoder_self", 1).pattern[2]
    assert drawn(visitor) == pytest.approx(expected, abs=1e-5)


def test_the_map_is_drawn_once_for_each_head(server: str, visitor: Visitor, translator: Translator) -> None:
    visitor.visit(page(server, **SENTENCE))
    visitor.page.locator(MAP).evaluate(
        """plot => new MutationObserver((changes) => {
          const drawn = changes.filter((each) => each.attributeName === "href" && each.target.closest(".hm"));
          window.drawings = (window.drawings ?? 0) + drawn.length;
        }).observe(plot.closest(".stVerticalBlock"), { subtree: true, attributes: true })"""
    )
    visitor.page.keyboard.press("Shift+ArrowRight")
    wait_for_query(visitor, "head", "1")
    visitor.page.locator("strong", has_text="layer 0, head 1").wait_for()
    # Time for a second drawing, which must not come.
    visitor.page.wait_for_timeout(1000)
    expected = translator.trace(SENTENCE["source"], SENTENCE["typed"]).attention("encoder_self", 0).pattern[1]
    assert drawn(visitor) == pytest.approx(expected, abs=1e-5)
    assert visitor.page.evaluate("window.drawings") == 1


def test_a_click_on_a_row_of_the_table_opens_its_head(server: str, visitor: Visitor) -> None:
    visitor.visit(page(server, **SENTENCE))
    table = visitor.page.locator(".st-key-heads-table .dvn-scroller").first
    table.scroll_into_view_if_needed()
    table.click(position={"x": 18, "y": 36 + 35 * 3 + 17})
    wait_for_query(visitor, "head", "3")
    visitor.page.locator("strong", has_text="layer 0, head 3").wait_for()


def test_a_link_opens_the_same_look(server: str, visitor: Visitor, translator: Translator) -> None:
    look = {"heads_values": "Norm-weighted", "heads_kinds": "true", "heads_lines": "All heads of the layer"}
    asked = SENTENCE | {"kind": "Decoder self-attention", "layer": "1", "head": "3", "heads_hide": "true"} | look
    visitor.visit(page(server, **asked))
    attention = translator.trace(SENTENCE["source"], SENTENCE["typed"]).attention("decoder_self", 1)
    expected = np.where(attention.mask[3], norm_weighted(attention)[3], np.nan)[1:, 1:]
    assert drawn(visitor) == pytest.approx(expected, rel=1e-4, abs=1e-5, nan_ok=True)
    assert query(visitor) == asked
    visitor.page.get_by_text("of a row on average").wait_for()
