"""Predict, then reveal, in Chromium: the picture waits for a click on a chip, and is the same one afterwards."""

from urllib.parse import urlencode

import pytest

from model.checkpoints.translator import Translator
from pages.widgets.guess_questions import highest
from tests.browser.conftest import Visitor

HERE = {"source": "a dog and a cat", "target": "Greedy", "kind": "Decoder self-attention", "layer": "1", "head": "2"}
PICTURES = {"heads_and_layers": ".mosaic canvas", "masks": ".st-key-masks-maps .js-plotly-plot"}
"""one picture of our own, one of Plotly"""


def switch(visitor: Visitor) -> None:
    switch = visitor.page.get_by_text("Guess first", exact=True)
    if not switch.is_visible():
        visitor.page.get_by_test_id("stSidebar").get_by_text("More", exact=True).click()
    switch.click()


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


def test_the_chip_of_the_largest_weight_is_right(server: str, visitor: Visitor, translator: Translator) -> None:
    here = HERE | {"source": "a dog", "kind": "Encoder self-attention"}
    visitor.visit(f"{server}/attention_step_by_step?{urlencode(here)}")
    switch(visitor)
    question = visitor.page.locator(".st-key-guess [data-testid=stText]").first.text_content()
    row = int(question.split("“")[1].split()[0])
    pattern = translator.trace("a dog", beam_size=1).attention("encoder_self", 1).pattern[2]
    (best,), weight = highest(pattern[row])
    chips = visitor.page.locator(".st-key-guess [data-testid=stButtonGroup] button")
    chips.first.wait_for()
    names = chips.all_text_contents()
    chips.nth(next(i for i, name in enumerate(names) if name.startswith(f"{best} "))).click()
    visitor.page.get_by_text("✓ Right").wait_for()
    said = visitor.page.get_by_text("with a weight of ").text_content()
    assert float(said.split("weight of ")[1].split(":")[0]) == pytest.approx(weight, abs=5e-4)
