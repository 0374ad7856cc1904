"""From a move of the sidebar's temperature to the last change of a whole page: what a person waits for."""

import re
import statistics
import time
from collections.abc import Iterator, Mapping
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from model.checkpoints.store import load_checkpoint
from tests.bench.browser import at_rest, painted_after, served, window
from tests.bench.sentences import text_of
from tests.bench.table import Row
from tests.bench.views import watched
from tests.browser.chromium import chromium
from tests.soak.server import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROUNDS = 8
TOKENS = 20
PAGES = {
    "home page": "",
    "attention, step by step": "attention_step_by_step",
    "heads and layers": "heads_and_layers",
    "masks": "masks",
    "positional encoding": "positional_encoding",
    "layer by layer": "layer_by_layer",
    "decoding": "decoding",
    "side by side": "side_by_side",
    "what if": "what_if",
}
"""pages whose pictures an attention temperature changes -> their addresses"""
PICTURES = {
    "who chose: waterfall": "who_chose",
    "why this score: products": "attention_step_by_step?part=Why+this+score",
    "your own vectors: two planes": "attention_step_by_step?part=Your+own+vectors&own_from=head",
    "one row over τ: ridges": "temperature?part=One+row",
    "lift the causal mask: dumbbells": "masks?part=Lift+the+causal+mask",
    "FlashAttention: tiles": "efficient_attention",
    "path of a token: river": "layer_by_layer",
}
"""the same of tabs: what their pictures are -> their addresses"""
CHARTS = Path(__file__).with_name("four_charts.py")
BUDGET = 1.5
"""times four charts of plain Streamlit: about as much work as a page of ours. An empty rerun would not do: it is mostly
the two frames that a screen takes to show anything, however slow the machine. A slow machine slows pages and charts
alike; a fast one speeds up the charts more than the pages, which may then miss it although none became slower."""
KEYS = ("ArrowRight", "ArrowRight", "ArrowLeft", "ArrowLeft")


def pages(checkpoint: str, addresses: Mapping[str, str] = PAGES, rounds: int = ROUNDS) -> Iterator[Row]:
    """A row for each of the addresses, beside four charts of plain Streamlit.

    One page is open at a time, as a person has it. The temperatures have been asked for before: the model does not run.
    """
    text = text_of(load_checkpoint(checkpoint, "cpu").tokenizer, TOKENS)
    asked = urlencode({"source": text, "checkpoint": checkpoint})
    with served(ROOT / "app.py") as address, served(CHARTS) as other, chromium() as browser:
        charts = watched(browser, f"{other}/?", "charts", TOKENS)
        for name, path in addresses.items():
            page = _opened(browser, f"{address}/{path}{'&' if '?' in path else '?'}{asked}")
            moved, drawn = [], []
            for _, key in zip(range(len(KEYS) + rounds), cycle(KEYS), strict=False):
                moved.append(_moved(page, key))
                drawn.append(charts.move(0))
            page.context.close()
            times, beside = moved[len(KEYS) :], statistics.median(drawn[len(KEYS) :])
            median = statistics.median(times)
            value = f"{median:.0f} ms ({min(times):.0f}-{max(times):.0f})"
            yield Row(f"{name}, {TOKENS} tokens", value, f"four charts {beside:.0f} ms", median / beside, BUDGET)


def _opened(browser: "Browser", address: str) -> "Page":
    page = window(browser)
    page.goto(address)
    page.get_by_text(re.compile("checks hold|The picture is the model")).first.wait_for()
    at_rest(page)
    return page


def _moved(page: "Page", key: str) -> float:
    """Milliseconds from the key to the last change of the page."""
    page.bring_to_front()
    page.get_by_role("slider", name="Temperature τ").first.focus()
    root = page.get_by_test_id("stMain").element_handle()
    time.sleep(0.2)
    taken = painted_after(page, root, "keydown", lambda: page.keyboard.press(key))
    at_rest(page)
    return taken
