"""Every page at its extremes in Chromium: no exception, nothing in the console, nothing asked of another machine."""

from urllib.parse import urlencode

import pytest

from pages import Page
from tests.browser.conftest import Visitor
from tests.browser.test_app import ALL_PAGES, path, type_sentence

LONG = "A dog runs. " * 14
"""more than a hundred tokens of the tiny vocabulary"""


def to_both_ends(visitor: Visitor) -> None:
    """Each slider of the page, Streamlit's and our own, by the keys that go there."""
    sliders = visitor.page.get_by_test_id("stMain").locator("[role=slider], input[type=range]")
    for number in range(sliders.count()):
        for key in ("End", "Home"):
            # A slider may be gone by now: another one decides how many there are.
            if number < sliders.count() and sliders.nth(number).is_visible():
                sliders.nth(number).focus()
                visitor.page.keyboard.press(key)
                visitor.settle()


@pytest.mark.parametrize("page", ALL_PAGES, ids=path)
def test_a_page_lives_through_its_sliders_ends_with_a_hundred_tokens_and_with_one(
    page: Page, server: str, visitor: Visitor
) -> None:
    query = {"source": LONG, "target": "Greedy", "kind": "Decoder self-attention", "layer": "1", "head": "3"}
    visitor.visit(f"{server}/{path(page)}?{urlencode(query)}")
    for sentence in (None, "A"):
        if sentence:
            type_sentence(visitor, sentence)
        to_both_ends(visitor)
        assert visitor.page.get_by_text("The picture is the model").is_visible()
        assert visitor.page.get_by_test_id("stException").count() == 0
