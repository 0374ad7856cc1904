"""The page on temperature in Chromium: the slider redraws by itself, letting go runs the model, and both agree."""

from urllib.parse import parse_qs, urlencode, urlsplit

import numpy as np
import pytest

from model.analysis.distributions import entropy
from model.analysis.heads.softmax import softmax_at
from model.checkpoints.translator import Translator
from model.interventions import AttentionTemperature
from model.run import Run
from pages.views.chosen_token import first_query
from tests.browser.conftest import Visitor

SOURCE = "a dog and a cat"
LABEL = "Temperature τ, redrawn in the browser"


def page(server: str, **query: str) -> str:
    return f"{server}/temperature?{urlencode({'target': 'Greedy', **query})}"


def asked_tau(visitor: Visitor) -> str:
    return parse_qs(urlsplit(visitor.page.url).query).get("tau", ["1"])[-1]


def drawn(visitor: Visitor) -> np.ndarray:
    """The weights that the picture shows."""
    visitor.page.locator(".temperature canvas.cells").wait_for()
    return np.array(visitor.page.locator("div.temperature").evaluate("node => [...node.weights]"))


def pixels(visitor: Visitor) -> str:
    return visitor.page.locator(".temperature canvas.cells").evaluate("canvas => canvas.toDataURL()")


def badge(visitor: Visitor, text: str) -> None:
    visitor.page.locator(".temperature .badge", has_text=text).wait_for()


def test_dragging_draws_again_without_a_run_and_letting_go_or_pausing_after_a_key_runs_the_model(
    server: str, visitor: Visitor, translator: Translator
) -> None:
    visitor.visit(page(server, source=SOURCE))
    trace = translator.trace(SOURCE, beam_size=1)
    attention = trace.attention("encoder_self", 0)
    assert drawn(visitor) == pytest.approx(attention.pattern[0].ravel(), abs=1e-6)
    slider, before = visitor.page.get_by_label(LABEL), pixels(visitor)
    runs = visitor.runs
    box = slider.bounding_box()
    visitor.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    visitor.page.mouse.down()
    visitor.page.mouse.move(box["x"] + box["width"] / 4, box["y"] + box["height"] / 2, steps=4)
    badge(visitor, "redrawn")
    tau = 10 ** float(slider.input_value())
    again = softmax_at(attention.scaled[0], attention.mask[0], tau)
    assert tau < 0.5
    assert drawn(visitor) == pytest.approx(again.ravel(), abs=1e-6)
    assert pixels(visitor) != before
    bits = float(visitor.page.locator(".temperature .entropy").nth(1).get_attribute("data-bits"))
    assert bits == pytest.approx(entropy(again).mean(), abs=1e-5)
    assert asked_tau(visitor) == "1"
    assert visitor.page.get_by_test_id("stApp").get_attribute("data-test-script-state") == "notRunning"
    visitor.page.mouse.up()
    badge(visitor, "rerun")
    visitor.settle()
    assert visitor.runs == runs + 1
    ran = float(asked_tau(visitor))
    change = AttentionTemperature(ran, kind="encoder_self", layer=0, head=0)
    hot = translator.trace(SOURCE, beam_size=1, interventions=(change,)).attention("encoder_self", 0)
    assert drawn(visitor) == pytest.approx(hot.pattern[0].ravel(), abs=1e-6)
    assert drawn(visitor) == pytest.approx(softmax_at(attention.scaled[0], attention.mask[0], ran).ravel(), abs=1e-6)
    for key, asked in (("End", "20"), ("Home", "0.05")):
        slider.press(key)
        visitor.page.wait_for_function("tau => location.search.includes(`tau=${tau}`)", arg=asked)
        badge(visitor, "rerun")
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
        slider.press(key)
    visitor.page.wait_for_function("/tau=0.1$/.test(location.search)")
    badge(visitor, "rerun")
    visitor.settle()
    visitor.page.get_by_role("tab", name="Before and after").click()
    visitor.page.get_by_text("before: τ = 1, as trained").wait_for()
    visitor.settle()


def test_every_key_of_the_chosen_row_is_in_sight_on_a_small_laptop(server: str, visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 1280, "height": 720})
    visitor.visit(page(server, source=" ".join(["a dog and a cat"] * 3)))
    bars = visitor.page.locator("div.temperature .bars")
    assert bars.evaluate("node => node.scrollHeight - node.clientHeight") <= 0
    shown = bars.locator(".label").evaluate_all("all => all.map((one) => one.getBoundingClientRect().bottom)")
    assert len(shown) == bars.locator(".numbers").text_content().count("\n") + 1 >= 15
    assert max(shown) <= bars.evaluate("node => node.getBoundingClientRect().bottom")


def test_a_row_of_a_long_sentence_at_the_highest_temperature_is_chosen_by_link_click_and_key(
    server: str, visitor: Visitor, translator: Translator
) -> None:
    source = " ".join(["A dog runs."] * 13)
    asked = {"kind": "Decoder self", "tau": "20", "part": "One row", "temperature-row": "99999"}
    visitor.visit(page(server, source=source, **asked))
    change = AttentionTemperature(20, kind="decoder_self", layer=0, head=0)
    trace = translator.trace(source, beam_size=1, interventions=(change,))
    weights = trace.attention("decoder_self", 0)
    plot = visitor.page.locator(".st-key-temperature-row-panels .js-plotly-plot")
    plot.locator(".main-svg").first.wait_for()
    assert plot.locator(".xtick").count() <= 30
    first = str(first_query(Run.of(translator, trace, "decoder_self")))
    row = visitor.page.get_by_role("spinbutton", name="Row (query)")
    assert row.input_value() == first, "no row has the number of the link"
    visitor.page.get_by_role("tab", name="Live").click()
    visitor.settle()
    assert drawn(visitor) == pytest.approx(weights.pattern[0].ravel(), abs=1e-6)
    assert row.input_value() == first
    marks = visitor.page.locator(".temperature canvas.marks")
    box = marks.bounding_box()
    marks.click(position={"x": box["width"] * 0.6, "y": box["height"] * 0.7})
    visitor.page.wait_for_function("location.search.includes('query=')")
    row = int(parse_qs(urlsplit(visitor.page.url).query)["query"][-1])
    expected = [
        f"{weight:.4f}" if seen else "masked"
        for weight, seen in zip(weights.pattern[0][row], weights.mask[0][row], strict=True)
    ]
    assert visitor.page.locator(".temperature .numbers").text_content().split("\n") == expected
    items = visitor.page.locator(".temperature .bars [role=listitem]")
    said = items.evaluate_all("items => items.map(item => item.getAttribute('aria-label').split(': ').at(-1))")
    assert said == expected
    marks.press("ArrowUp")
    visitor.page.wait_for_function(f"location.search.includes('query={row - 1}')")
    most = weights.pattern[0][row - 1].max()
    assert f"most, {most:.3f}, on " in visitor.page.locator(".temperature .spoken").text_content()
