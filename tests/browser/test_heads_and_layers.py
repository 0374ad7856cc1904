"""The page on heads and layers in Chromium: what opens a head, and what is drawn then."""

from urllib.parse import urlencode

import numpy as np
import pytest

from model.checkpoints.translator import Translator
from tests.browser.conftest import Visitor, heading_of, query, read_maps, wait_for_query_to_have

MAP = ".st-key-heads_and_layers-map"
SENTENCE = {"source": "a dog and a cat", "target": "Typed", "typed": "Ein Hund mit einer Katze."}


def page(server: str, **query: str) -> str:
    return f"{server}/heads_and_layers?{urlencode(query)}"


def drawn(visitor: Visitor) -> np.ndarray:
    """The numbers of the heat map as the browser holds them."""
    visitor.page.locator(f"{MAP} .js-plotly-plot").wait_for()
    return read_maps(visitor, MAP)[0]


def test_a_head_is_opened_by_row_by_keys_of_the_mosaic_and_by_shift_and_an_arrow(
    server: str, visitor: Visitor, translator: Translator
) -> None:
    """The map is the head's, and drawn once for each; the address keeps the look that a link asked for."""
    asked = SENTENCE | {"heads_lines": "All heads of the layer"}
    visitor.visit(page(server, **asked))
    assert query(visitor) == asked
    visitor.page.get_by_role("tab", name="All heads in numbers").click()
    visitor.settle()
    table = visitor.page.locator(".st-key-heads_and_layers-table .dvn-scroller").first
    table.scroll_into_view_if_needed()
    table.click(position={"x": 18, "y": 36 + 35 * 3 + 17})
    wait_for_query_to_have(visitor, head="3")
    visitor.page.get_by_role("tab", name="All heads", exact=True).click()
    visitor.settle()
    visitor.page.locator("strong", has_text="layer 0, head 3").wait_for()
    picture = visitor.page.get_by_role("application").first
    picture.focus()
    for key in ("ArrowLeft", "ArrowDown", "Enter"):
        picture.press(key)
    wait_for_query_to_have(visitor, layer="1", head="2")
    visitor.page.locator("strong", has_text="layer 1, head 2").wait_for()
    pattern = translator.trace(SENTENCE["source"], SENTENCE["typed"]).attention("encoder_self", 1).pattern
    assert drawn(visitor) == pytest.approx(pattern[2], abs=1e-5)
    visitor.page.locator(f"{MAP} .js-plotly-plot").evaluate(
        """plot => new MutationObserver((changes) => {
          const drawn = changes.filter((each) => each.attributeName === "href" && each.target.closest(".hm"));
          window.drawings = (window.drawings ?? 0) + drawn.length;
        }).observe(plot.closest(".stVerticalBlock"), { subtree: true, attributes: true })"""
    )
    visitor.page.get_by_role("heading", name=heading_of("Heads and layers")).click()
    for key, head in (("ArrowLeft", 1), ("ArrowRight", 2)):
        visitor.page.keyboard.press(f"Shift+{key}")
        wait_for_query_to_have(visitor, head=str(head))
        visitor.page.locator("strong", has_text=f"layer 1, head {head}").wait_for()
        assert drawn(visitor) == pytest.approx(pattern[head], abs=1e-5)
    assert visitor.page.evaluate("window.drawings") == 2, "each head that was opened is drawn once"
