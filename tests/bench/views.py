"""From a slider's move to the painted picture, beside a rerun that draws nothing."""

import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.browser import after_input, after_key, at_rest, chromium, served, window
from tests.bench.sentences import TOKENS
from tests.bench.table import Row

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ElementHandle, Page

ROUNDS = 15
PICTURES = {
    "mosaic": ("every head of every layer, all kinds", {60: 1.3, 128: 1.8}),
    "one-kind": ("every head of one kind", {}),
    "lines": ("token lines of eight heads", {60: 1.8}),
    "map": ("heat map of one head (Plotly)", {20: 2.5}),
    "row": ("one row at seven temperatures (Plotly)", {}),
    "matrices": ("matrices, step by step", {}),
    "temperature": ("temperature, drawn again in the browser", dict.fromkeys(TOKENS, 0.35)),
    "word": ("one word, drawn again in the browser: nothing is faster", {}),
}
"""name in tests.bench.pictures -> what it is, and the largest ratio allowed by number of tokens"""
WORD = """
(root) => {
  const [slider, said] = ["input", "span"].map((name) => root.appendChild(document.createElement(name)));
  Object.assign(slider, { type: "range", min: -1, max: 1, step: 0.5 });
  slider.addEventListener("input", () => (said.textContent = slider.value));
  return slider;
}
"""
"""puts a slider and what it says into an empty picture"""
SERVER_TIME = 10
"""Milliseconds that the server may take for a rerun that draws nothing"""


@dataclass
class Watched:
    """A window with one picture."""

    page: "Page"
    root: "ElementHandle"
    slider: "ElementHandle | None" = None
    """the picture's own, in the browser; None: Streamlit's"""
    moves: int = 0

    def move(self) -> float:
        """Milliseconds until the picture is painted anew."""
        self.page.bring_to_front()
        self.moves += 1
        if self.slider is not None:
            return after_input(self.page, self.root, self.slider, -0.5 if self.moves % 2 else 0.5)
        return after_key(self.page, self.root, "ArrowRight")


def views(checkpoint: str, sizes: Sequence[int] = TOKENS, rounds: int = ROUNDS) -> Iterator[Row]:
    """A row for the empty rerun and one for each picture and number of tokens, everyone's turn in each round."""
    with served(Path(__file__).with_name("pictures.py")) as address, chromium() as browser:
        opened = partial(watched, browser, f"{address}/?checkpoint={checkpoint}")
        empty = opened("nothing", sizes[0])
        yield server_time(empty.page)
        for tokens in sizes:
            windows = {name: opened(name, tokens) for name in PICTURES}
            yield from _rows(tokens, measured({"nothing": empty} | windows, rounds))
            for each in windows.values():
                each.page.context.close()


def watched(browser: "Browser", address: str, name: str, tokens: int) -> Watched:
    """A window that shows the picture `name`, its slider in focus."""
    page = window(browser)
    page.goto(f"{address}&view={'nothing' if name == 'word' else name}&tokens={tokens}")
    page.get_by_text("s after 0 moves").wait_for()
    at_rest(page)
    root = page.locator(".st-key-picture").element_handle()
    page.get_by_role("slider", name="Move").focus()
    return Watched(page, root, _slider_of(page, root, name))


def _slider_of(page: "Page", root: "ElementHandle", name: str) -> "ElementHandle | None":
    if name == "word":
        return root.evaluate_handle(WORD).as_element()
    return page.locator(".temperature input[type=range]").element_handle() if name == "temperature" else None


def measured(windows: dict[str, Watched], rounds: int) -> dict[str, list[float]]:
    """Name -> milliseconds, one a round after two to warm up; each time another one is first."""
    times: dict[str, list[float]] = {name: [] for name in windows}
    names = list(windows)
    for number in range(rounds + 2):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            taken = windows[name].move()
            if number >= 2:
                times[name].append(taken)
    return times


def _rows(tokens: int, times: dict[str, list[float]]) -> Iterator[Row]:
    empty = statistics.median(times.pop("nothing"))
    for name, taken in times.items():
        title, budgets = PICTURES[name]
        median = statistics.median(taken)
        yield Row(
            f"{title}, {tokens} tokens",
            f"{median:.0f} ms ({min(taken):.0f}-{max(taken):.0f})",
            f"empty rerun {empty:.0f} ms",
            median / empty,
            budgets.get(tokens),
        )


def server_time(page: "Page", moves: int = 20) -> Row:
    """Processor time of the whole server for a rerun that draws nothing, which the page itself says."""
    said = page.get_by_text("s after ")
    spent = []
    for number in range(moves):
        page.keyboard.press("ArrowRight")
        page.get_by_text(re.compile(f"s after {number + 1} moves")).wait_for()
        spent.append(float(said.inner_text().split()[0]))
    # The garbage of a rerun is collected after the page has said it, and so counted with the next one.
    each = [1000 * (after - before) for before, after in pairwise(spent)]
    median = statistics.median(each)
    return Row("empty rerun, server", f"{median:.1f} ms", "", median, SERVER_TIME, unit="ms")
