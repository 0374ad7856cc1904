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

from tests.bench.browser import served, window
from tests.bench.table import Row
from tests.browser.chromium import chromium
from tests.soak.server import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROUNDS = 3
OF_ITS_PARTS = 1.25
"""times what a new process takes to import torch and another to draw one chart with plain Streamlit in a new window.
Nothing that shows a run of a model with Streamlit can do without either; a quarter more is one second of four."""
OF_ONE_CHART = 1.5
"""times what plain Streamlit takes to draw one chart in a new window, which alone is about two seconds"""
ONE_CHART = Path(__file__).with_name("one_chart.py")
PICTURE = ".js-plotly-plot .main-svg, .layers canvas"
VISITS = {
    "home page": "",
    "deep link, heads and layers": "heads_and_layers?kind=cross&layer=1&head=3",
}
PAINTED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
IMPORT = "import time; began = time.perf_counter(); import torch; print(time.perf_counter() - began)"


def coldstart(checkpoint: str, rounds: int = ROUNDS) -> Iterator[Row]:
    """A new window each time; in each round a new server for each visit and for one chart, and torch imported anew."""
    paths = [f"{path}{'&' if '?' in path else '?'}checkpoint={checkpoint}" for path in VISITS.values()]
    visits = [(ONE_CHART, ""), *((ROOT / "app.py", path) for path in paths)]
    with chromium() as browser:
        new_servers = (partial(_of_new_server, browser, *visit) for visit in visits)
        torch, new_chart, *started_now = _seconds([import_torch, *new_servers], rounds)
        with served(ROOT / "app.py") as app, served(ONE_CHART) as plain:
            addresses = [plain, *(f"{app}/{path}" for path in paths)]
            chart, *running = _seconds([partial(_of_running_server, browser, each) for each in addresses], rounds)
    for title, taken in zip(VISITS, started_now, strict=True):
        beside = f"import torch {_said(torch)} + one chart, new plain Streamlit {_said(new_chart)}"
        ratio = statistics.median(taken) / (statistics.median(torch) + statistics.median(new_chart))
        yield Row(f"new server, {title}", _said(taken), beside, ratio, OF_ITS_PARTS)
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


def _of_new_server(browser: "Browser", script: Path, path: str) -> float:
    """Seconds from the start of a server that runs `script` to the first painted picture at `path`."""
    with _new_window(browser) as page:
        began = time.perf_counter()
        with served(script) as address:
            _wait_for_picture(page, f"{address}/{path}")
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
