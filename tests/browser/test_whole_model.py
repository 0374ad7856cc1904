"""The whole model in Chromium: a token travels by keyboard, a switch shows log p, a click opens the page on the box."""

import json
import re

from model.analysis.stream.whole_model import model_boxes
from model.checkpoints.translator import Translator
from model.interventions import SublayerOff
from tests.browser.conftest import Visitor, query
from viz.tokens import labels


def test_a_token_travels_is_switched_and_opens_its_page(server: str, visitor: Visitor, translator: Translator) -> None:
    page = visitor.page
    visitor.visit(f"{server}/whole_model?source=a+dog+and+a+cat&target=Greedy&whole_at=decoder.1.self_attn~1~1")
    trace = translator.trace("a dog and a cat", beam_size=1)
    boxes = {box.name: box for box in model_boxes(translator, trace)}
    marks = page.locator(".whole_model [role=application]")
    marks.focus()
    for key in ("ArrowRight", "ArrowUp", "ArrowUp"):
        marks.press(key)
    cross = boxes["decoder.1.cross_attn"].values
    assert page.locator(".whole_model h3").inner_text() == "Cross-attention"
    read, next_one = (labels(tokens)[2] for tokens in (trace.tgt_tokens, trace.next_tokens))
    where = f"Decoder, layer 1. Token 2: “{read}”, should predict “{next_one}”"
    assert page.locator(".whole_model .where").inner_text() == where
    spoken = page.locator(".whole_model .spoken").inner_text()
    assert f"x · W_Q: length {digits(cross['in'][2])} → {digits(cross['q'][2])}" in spoken
    page.wait_for_function("location.search.includes('whole_at=decoder.1.cross_attn~1~2')")

    page.get_by_role("button", name=re.compile("^Off")).click()
    after = translator.rerun(trace, (SublayerOff("decoder", 1, "cross_attn"),)).log_probability
    shown = f"{trace.log_probability:.3f} → {after:.3f} nats".replace("-", "−")
    page.locator(".whole_model .score", has_text=shown).wait_for()
    assert page.get_by_role("button", name=re.compile("^Off")).get_attribute("aria-pressed") == "true"
    page.get_by_role("button", name="All on").click()
    page.wait_for_function("!location.search.includes('whole_off')")
    visitor.settle()

    counts, legend = page.get_by_role("button", name=re.compile("^Parameters")), page.locator(".whole_model .legend")
    for pressed in (True, False):
        counts.click()
        assert counts.get_attribute("aria-pressed") == str(pressed).lower()
        assert ("In each box: its parameter count" in legend.inner_text()) is pressed

    for _ in range(2):
        marks.press("+")
    assert list(json.loads(marks.get_attribute("data-places"))) == [
        name for name in boxes if name.startswith("decoder.1.")
    ]
    for _ in range(2):
        marks.press("-")
    places = json.loads(marks.get_attribute("data-places"))
    x, y = places["decoder.0.feed_forward"]
    for _ in range(2):
        marks.click(position={"x": x, "y": y})
    page.wait_for_function("location.pathname.endsWith('layer_by_layer')")
    visitor.settle()
    assert query(visitor) | {"layers_tab": "Neurons", "layers_step": "0 feed-forward"} == query(visitor)


def digits(value: float) -> str:
    return f"{float(f'{value:.3g}'):,g}"
