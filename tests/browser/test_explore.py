"""The first screen of the home page in Chromium: a word, its way through one head, and the same word in all heads."""

from typing import TYPE_CHECKING
from urllib.parse import urlencode

import numpy as np
import pytest

from model.analysis.heads.softmax import softmax_at
from model.checkpoints.translator import Translator
from model.interventions import AttentionTemperature
from model.run import Run
from model.trace import Trace
from pages.views.chosen_token import first_query
from tests.browser.conftest import Visitor, query, wait_for_query_to_have
from tests.pages.figures import read_number

if TYPE_CHECKING:
    from playwright.sync_api import Locator

SOURCE = "a dog and a cat"


def page(server: str, **asked: str) -> str:
    return f"{server}/?{urlencode({'source': SOURCE, 'target': 'Greedy', **asked})}"


def weights(visitor: Visitor) -> np.ndarray:
    """What the picture shows of the chosen word."""
    visitor.page.locator(".explore .steps .cell").first.wait_for()
    return np.array(visitor.page.locator("div.explore").evaluate("node => [...node.weights]"))


def chip(visitor: Visitor, text: str, place: int = 0) -> object:
    return visitor.page.locator("div.explore").get_by_role("group", name=text).get_by_role("button").nth(place)


def places(trace: Trace, kind: str = "encoder_self") -> tuple[int, int, int]:
    """A query, a key and a target's query that the page does not begin with: only those stand in the address."""
    run = Run.of(None, trace, kind)
    query = next(row for row in range(1, 9) if row != first_query(run))
    keys = run.attention.pattern[0, query].argsort()
    return query, int(keys[0]), next(row for row in range(1, 9) if row != first_query(Run.of(None, trace, "cross")))


def test_a_word_is_followed_by_clicks_into_its_head_and_its_matrices(
    server: str, visitor: Visitor, translator: Translator
) -> None:
    trace = translator.trace(SOURCE, beam_size=1)
    row, key, step = places(trace)
    visitor.visit(page(server))
    chip(visitor, "Tokens of the source", row).click()
    wait_for_query_to_have(visitor, query=str(row))
    attention = trace.attention("encoder_self", 0)
    assert weights(visitor) == pytest.approx(attention.pattern[0, row], abs=1e-6)
    chip(visitor, "Tokens of the source", key).click()
    wait_for_query_to_have(visitor, query=str(row), key=str(key))
    rows = visitor.page.locator("div.explore .all")
    order = rows.get_by_role("group", name="Order of the heads").get_by_role("button")
    pressed = lambda: [button.get_attribute("aria-pressed") for button in order.all()]  # noqa: E731
    assert pressed() == ["true", "false"], "a click on a key leaves the order as it is"
    order.nth(1).click()
    assert pressed() == ["false", "true"]
    on_key = [trace.attention("encoder_self", layer).pattern[:, row, key] for layer in (0, 1)]
    layer, head = divmod(int(np.concatenate(on_key).argmax()), 4)
    marks = rows.locator("canvas.marks")
    marks.click(position={"x": marks.bounding_box()["width"] / 2, "y": 3})
    wait_for_query_to_have(visitor, **{name: str(value) for name, value in (("layer", layer), ("head", head)) if value})
    assert weights(visitor) == pytest.approx(trace.attention("encoder_self", layer).pattern[head, row], abs=1e-6)
    visitor.page.get_by_role("button", name="softmax: weights").click()
    opened = visitor.page.locator("div.explore .detail")
    opened.locator("canvas.cells").wait_for()
    assert visitor.page.locator("div.explore .steps").is_hidden()
    opened.get_by_role("button", name="softmax: weights").click()
    visitor.page.locator("div.explore .steps").wait_for()
    chip(visitor, "Tokens of the target", step + 1).click()
    wait_for_query_to_have(visitor, kind="Cross", query=str(step))
    assert weights(visitor) == pytest.approx(trace.attention("cross", layer).pattern[head, step], abs=1e-6)
    words = visitor.page.locator(".sentence [data-query]")
    other = next(
        row for row in map(int, words.evaluate_all("all => all.map((one) => one.dataset.query)")) if row != step
    )
    visitor.page.locator(f".sentence [data-query='{other}']").click()
    visitor.page.wait_for_function("step => new URLSearchParams(location.search).get('query') !== step", arg=str(step))
    visitor.settle()
    assert weights(visitor) == pytest.approx(trace.attention("cross", layer).pattern[head, other], abs=1e-6)


def test_the_small_figure_chooses_kind_and_layer_and_follows_the_sidebar(
    server: str, visitor: Visitor, translator: Translator
) -> None:
    visitor.visit(page(server))
    figure = visitor.page.locator("div.explore").get_by_role("group", name="Where in the model")
    kinds = translator.kinds
    assert figure.get_by_role("button").count() == sum(len(kind.layers) for kind in kinds)
    figure.get_by_role("button", name="Cross-attention, layer 1").click()
    wait_for_query_to_have(visitor, kind="Cross", layer="1")
    assert lit(figure) == ["Cross-attention, layer 1"]
    visitor.page.get_by_test_id("stSidebar").get_by_role("radio", name="Decoder self").click()
    wait_for_query_to_have(visitor, kind="Decoder self", layer="1")
    assert lit(figure) == ["Decoder self-attention, layer 1"]


def lit(figure: "Locator") -> list[str]:
    """Names of the boxes that the figure marks as chosen."""
    return [box.get_attribute("aria-label") for box in figure.locator("[aria-pressed=true]").all()]


def test_keys_choose_the_word_its_head_and_its_key(server: str, visitor: Visitor, translator: Translator) -> None:
    trace, keyboard = translator.trace(SOURCE, beam_size=1), visitor.page.keyboard
    row, _, _ = places(trace)
    visitor.visit(page(server))
    chip(visitor, "Tokens of the source", row - 1).focus()
    keyboard.press("ArrowRight")
    keyboard.press("Enter")
    wait_for_query_to_have(visitor, query=str(row))
    visitor.page.locator("div.explore .all canvas.marks").focus()
    keyboard.press("ArrowDown")
    keyboard.press("Enter")
    wait_for_query_to_have(visitor, query=str(row), head="1")
    attention = trace.attention("encoder_self", 0)
    assert weights(visitor) == pytest.approx(attention.pattern[1, row], abs=1e-6)
    other = int(attention.pattern[1, row].argsort()[0])
    chip(visitor, "Keys: choose one", 0).focus()
    for _ in range(other):
        keyboard.press("ArrowRight")
    keyboard.press("Space")
    wait_for_query_to_have(visitor, query=str(row), key=str(other))
    label = chip(visitor, "Keys: choose one", other)
    assert label.get_attribute("aria-pressed") == "true"
    said = read_number(label.get_attribute("aria-label").rpartition("weight ")[2])
    assert said == pytest.approx(attention.pattern[1, row, other], rel=1e-6)


def test_the_temperature_draws_the_weights_and_their_mixture_again_and_runs_the_model_where_it_is_let_go(
    server: str, visitor: Visitor, translator: Translator
) -> None:
    visitor.visit(page(server, query="1"))
    attention = translator.trace(SOURCE, beam_size=1).attention("encoder_self", 0)
    slider, runs = (
        visitor.page.locator("div.explore").get_by_label("Temperature τ, redrawn in the browser"),
        visitor.runs,
    )
    box = slider.bounding_box()
    visitor.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    visitor.page.mouse.down()
    visitor.page.mouse.move(box["x"] + box["width"] / 4, box["y"] + box["height"] / 2, steps=3)
    visitor.page.locator("div.explore.again").wait_for()
    again = softmax_at(attention.pre_softmax[0, 1], attention.mask[0, 1], 10 ** float(slider.input_value()))
    assert weights(visitor) == pytest.approx(again, abs=1e-6)
    mixed = visitor.page.locator("div.explore").evaluate("node => [...node.mixture]")
    assert mixed == pytest.approx(again @ attention.v[0], abs=1e-5)
    assert visitor.runs == runs
    visitor.page.mouse.up()
    visitor.page.wait_for_function("location.search.includes('tau=')")
    visitor.settle()
    change = AttentionTemperature(float(query(visitor)["tau"]), kind="encoder_self", layer=0, head=0)
    hot = translator.trace(SOURCE, beam_size=1, interventions=(change,)).attention("encoder_self", 0)
    assert weights(visitor) == pytest.approx(hot.pattern[0, 1], abs=1e-6)


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (1920, 1080), (768, 1024), (390, 844)])
def test_all_fits_its_place(width: int, height: int, server: str, visitor: Visitor) -> None:
    """At 1280 x 720 it is one screen; nowhere is it wider than the page."""
    visitor.page.set_viewport_size({"width": width, "height": height})
    visitor.visit(page(server, target="Typed", typed="ein Hund"))
    picture = visitor.page.locator("div.explore")
    box = picture.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    assert picture.evaluate("node => node.scrollWidth <= node.clientWidth + 1")
    if width >= 1280:
        assert box["y"] + box["height"] <= height
        assert picture.locator(".chain").evaluate("node => node.scrollHeight <= node.clientHeight")


def test_on_a_phone_an_edge_beyond_which_keys_lie_says_so(server: str, visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    visitor.visit(f"{server}/?{urlencode({'source': 'A dog runs through the snow and a cat sleeps.', 'key': 0})}")
    edges = visitor.page.locator(".edges")
    for end, sides in (("0", ["after"]), ("60", ["after", "before"]), ("1e9", ["before"])):
        edges.locator(".scroller").evaluate("(box, end) => { box.scrollLeft = end; }", end)
        for side in ("before", "after"):
            edges.and_(visitor.page.locator(f"[data-{side}]")).wait_for(state="visible" if side in sides else "hidden")
    visitor.visit(f"{server}/?source=a")
    visitor.page.locator(".edges:not([data-before], [data-after])").wait_for()
