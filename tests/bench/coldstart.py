"""From the start of the server, or from a link to one that runs, to the first painted picture."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.browser import ROOT, chromium, served, started, wait_until_healthy, window
from tests.bench.table import Row

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROUNDS = 3
SECONDS = 4.0
"""that a new server may take"""
OF_ONE_CHART = 1.5
"""times what plain Streamlit takes to draw one chart in a new window, which alone is about two seconds"""
PICTURE = ".js-plotly-plot .main-svg, .layers canvas"
VISITS = {
    "home page": "",
    "deep link, heads and layers": "heads_and_layers?kind=cross&layer=1&head=3",
}
PAINTED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
IMPORT = "import time; began = time.perf_counter(); import torch; print(time.perf_counter() - began)"


def coldstart(checkpoint: str, rounds: int = ROUNDS) -> Iterator[Row]:
    """A new window each time; in each round a new server for each visit, and a new process that imports torch."""
    with chromium() as browser:
        torch, *started_now = _seconds(
            [import_torch, *(partial(_of_new_server, browser, path, checkpoint) for path in VISITS.values())], rounds
        )
        with served(ROOT / "app.py") as app, served(Path(__file__).with_name("one_chart.py")) as plain:
            addresses = [plain, *(_address(app, path, checkpoint) for path in VISITS.values())]
            chart, *running = _seconds([partial(_of_running_server, browser, each) for each in addresses], rounds)
    for title, taken in zip(VISITS, started_now, strict=True):
        beside = f"import torch {_said(torch)}"
        yield Row(f"new server, {title}", _said(taken), beside, statistics.median(taken), SECONDS, unit="s")
    for title, taken in zip(VISITS, running, strict=True):
        beside = f"one chart, plain Streamlit {_said(chart)}"
        ratio = statistics.median(taken) / statistics.median(chart)
        yield Row(f"running server, {title}", _said(taken), beside, ratio, OF_ONE_CHART)


def _seconds(work: Sequence[Callable[[], float]], rounds: int) -> list[list[float]]:
    """What each of them returns in each round, taking turns."""
    times: list[list[float]] = [[] for _ in work]
    for number in range(rounds + 1):
        for measure, taken in zip(work, times, strict=True):
            seconds = measure()
            # The first round reads the files into the machine's memory.
            if number:
                taken.append(seconds)
    return times


def _said(taken: Sequence[float]) -> str:
    return f"{statistics.median(taken):.1f} s ({min(taken):.1f}-{max(taken):.1f})"


def import_torch() -> float:
    """Seconds, in a process of its own."""
    return float(subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, check=True, text=True).stdout)


def _of_new_server(browser: "Browser", path: str, checkpoint: str) -> float:
    """Seconds from the start of a server to the first painted picture at `path`."""
    with _new_window(browser) as page:
        began = time.perf_counter()
        with started(ROOT / "app.py") as (address, server):
            wait_until_healthy(address, server)
            _wait_for_picture(page, _address(address, path, checkpoint))
            return time.perf_counter() - began


def _of_running_server(browser: "Browser", address: str) -> float:
    """Seconds from the address to the first painted picture."""
    with _new_window(browser) as page:
        began = time.perf_counter()
        _wait_for_picture(page, address)
        return time.perf_counter() - began


@contextmanager
def _new_window(browser: "Browser") -> Iterator["Page"]:
    page = window(browser)
    try:
        yield page
    finally:
        page.context.close()


def _wait_for_picture(page: "Page", address: str) -> None:
    page.goto(address, wait_until="commit")
    page.locator(PICTURE).first.wait_for()
    page.evaluate(PAINTED)


def _address(server: str, path: str, checkpoint: str) -> str:
    return f"{server}/{path}{'&' if '?' in path else '?'}checkpoint={checkpoint}"
