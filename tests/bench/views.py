"""From a slider's move to the painted picture, beside a rerun that draws nothing."""

import re
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.browser import at_rest, painted_after, served, window
from tests.bench.sentences import TOKENS
from tests.bench.table import Row
from tests.browser.chromium import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ElementHandle, Page

ROUNDS = 21
PICTURES = {
    "bytes": ("a component with as many bytes as the mosaic that shows one: Streamlit is no faster", {}),
    "mosaic": ("every head of every layer, all kinds", dict.fromkeys(TOKENS, 1.2)),
    "one-kind": ("every head of one kind", {}),
    "lines": ("token lines of eight heads", {60: 1.8}),
    "map": ("heat map of one head (Plotly)", {20: 2.5}),
    "row": ("one row at seven temperatures (Plotly)", {}),
    "matrices": ("matrices, step by step", {}),
    "temperature": ("temperature, drawn again in the browser", dict.fromkeys(TOKENS, 0.35)),
    "word": ("one word, drawn again in the browser: nothing is faster", {}),
}
"""name in tests.bench.pictures -> what it is, and the largest ratio allowed by number of tokens"""
BESIDE = {"mosaic": ("bytes", "as many bytes")}
"""what a picture is measured beside, and its name in the table; the others: beside the empty rerun"""
ALONE = ("bytes", "mosaic")
"""open without the other pictures, and moved twice as often: two medians of ROUNDS moves of the same picture differ by
a twentieth, and the budget is a fifth"""
WORD = """
(root) => {
  const [slider, said] = ["input", "span"].map((name) => root.appendChild(document.createElement(name)));
  Object.assign(slider, { type: "range", min: -1, max: 1, step: 0.01 });
  slider.addEventListener("input", () => (said.textContent = slider.value));
  return slider;
}
"""
"""puts a slider and what it says into an empty picture"""
STRETCH = 80
"""pixels by which a slider is dragged"""
REST = 0.15
"""seconds in front before a move: a window that has just come to the front is still being drawn"""
FRAME = 1 / 60
"""seconds between two frames of the screen"""
GOLDEN = 0.618
"""multiples of it, without their whole parts, fill the stretch from 0 to 1 evenly, however many there are"""
OF_PLAIN_STREAMLIT = 1.5
"""times the processor time of a rerun of plain Streamlit without torch that a rerun that draws nothing may take on a
server with a model and its runs in memory: where the one takes 4 ms, the other has two more"""


@dataclass
class Watched:
    """A window with one picture."""

    page: "Page"
    root: "ElementHandle"
    grip: tuple[float, float] | None = None
    """where on the page the pointer holds the picture's own slider; None: Streamlit's, moved by a key"""
    moves: int = 0

    def move(self, wait: float) -> float:
        """Milliseconds until the picture is painted anew; the move comes `wait` seconds after a frame."""
        self.page.bring_to_front()
        time.sleep(REST)
        self.moves += 1
        event, act = ("keydown", self._press) if self.grip is None else ("input", self._drag)
        return painted_after(self.page, self.root, event, act, wait)

    def _press(self) -> None:
        self.page.keyboard.press("ArrowRight")

    def _drag(self) -> None:
        x, y = self.grip
        self.page.mouse.move(x + (STRETCH if self.moves % 2 else 0), y)


def views(checkpoint: str, sizes: Sequence[int] = TOKENS, rounds: int = ROUNDS) -> Iterator[Row]:
    """A row for the empty rerun and one for each picture and number of tokens, everyone's turn in each round."""
    scripts = [Path(__file__).with_name(name) for name in ("pictures.py", "empty.py")]
    with served(scripts[0]) as address, served(scripts[1]) as plain, chromium() as browser:
        opened = partial(watched, browser, f"{address}/?checkpoint={checkpoint}")
        empty = opened("nothing", sizes[0])
        yield _server_row(empty.page, watched(browser, f"{plain}/?", "nothing", sizes[0]).page)
        for tokens, alone in product(sizes, (True, False)):
            windows = {name: opened(name, tokens) for name in PICTURES if (name in ALONE) is alone}
            if windows:
                yield from _rows(tokens, measured({"nothing": empty} | windows, 2 * rounds if alone else rounds))
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
    return Watched(page, root, _grip(page, root, name))


def _grip(page: "Page", root: "ElementHandle", name: str) -> tuple[float, float] | None:
    """The pointer takes hold of the picture's own slider in its middle, if it has one."""
    if name == "word":
        slider = root.evaluate_handle(WORD).as_element()
    elif name == "temperature":
        slider = page.locator(".temperature input[type=range]").element_handle()
    else:
        return None
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    return x, y


def measured(windows: dict[str, Watched], rounds: int) -> dict[str, list[float]]:
    """Name -> milliseconds, after two rounds to warm up; each time another picture is first.

    What stands under every ratio, "nothing", has a turn before each third picture: its time varies most.
    """
    times: dict[str, list[float]] = {name: [] for name in windows}
    pictures = [name for name in windows if name != "nothing"]
    for number in range(rounds + 2):
        first = number % len(pictures)
        wait = number * GOLDEN % 1 * FRAME
        for place, name in enumerate(pictures[first:] + pictures[:first]):
            for each in ("nothing", name) if place % 3 == 0 else (name,):
                taken = windows[each].move(wait)
                if number >= 2:
                    times[each].append(taken)
    return times


def _rows(tokens: int, times: dict[str, list[float]]) -> Iterator[Row]:
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    for name, (title, budgets) in PICTURES.items():
        if name not in times:
            continue
        base, called = BESIDE.get(name, ("nothing", "empty rerun"))
        yield Row(
            f"{title}, {tokens} tokens",
            f"{medians[name]:.0f} ms ({min(times[name]):.0f}-{max(times[name]):.0f})",
            f"{called} {medians[base]:.0f} ms",
            medians[name] / medians[base],
            budgets.get(tokens),
        )


def _server_row(empty: "Page", plain: "Page") -> Row:
    ours, theirs = (statistics.median(taken) for taken in server_times([empty, plain]))
    return Row("empty rerun, server", f"{ours:.1f} ms", f"plain {theirs:.1f} ms", ours / theirs, OF_PLAIN_STREAMLIT)


def server_times(pages: Sequence["Page"], moves: int = 20) -> list[list[float]]:
    """Milliseconds of processor time of each page's whole server for a rerun that draws nothing, taking turns.

    The pages say themselves what their servers have spent so far.
    """
    spent: list[list[float]] = [[] for _ in pages]
    for number in range(moves):
        for page, so_far in zip(pages, spent, strict=True):
            page.bring_to_front()
            page.keyboard.press("ArrowRight")
            page.get_by_text(re.compile(f"s after {number + 1} moves")).wait_for()
            so_far.append(float(page.get_by_text("s after ").inner_text().split()[0]))
    # The garbage of a rerun is collected after the page has said it, and so counted with the next one.
    return [[1000 * (after - before) for before, after in pairwise(so_far)] for so_far in spent]
