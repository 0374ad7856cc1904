"""Predict, then reveal, in Chromium: the picture waits for a click on a chip, and is the same one afterwards."""

from urllib.parse import urlencode

import pytest

from tests.browser.conftest import Visitor

HERE = {"source": "a dog and a cat", "target": "Greedy", "kind": "Decoder self", "layer": "1", "head": "2"}
PICTURES = {"heads_and_layers": ".mosaic canvas", "masks": ".st-key-masks-maps .js-plotly-plot"}
"""one picture of our own, one of Plotly"""


def switch(visitor: Visitor) -> None:
    visitor.page.keyboard.press("Control+k")
    visitor.page.get_by_role("dialog").get_by_role("button", name="Guess first").click()
    visitor.page.get_by_role("dialog").wait_for(state="detached")


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_waits_for_a_guess_and_goes_on_without_one(name: str, server: str, visitor: Visitor) -> None:
    visitor.visit(f"{server}/{name}?{urlencode(HERE)}")
    picture = visitor.page.locator(PICTURES[name])
    picture.first.wait_for()
    switch(visitor)
    visitor.page.get_by_text("The picture waits for your guess.").wait_for()
    visitor.settle()
    assert picture.count() == 0
    visitor.page.locator(".st-key-guess [data-testid=stButtonGroup] button").first.click()
    visitor.page.get_by_text("of 1 right in this session").wait_for()
    picture.first.wait_for()
    visitor.page.get_by_role("button", name="Another question").click()
    visitor.page.get_by_text("The picture waits for your guess.").wait_for()
    switch(visitor)
    picture.first.wait_for()
    visitor.settle()
