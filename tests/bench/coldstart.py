"""From `streamlit run` to the first painted picture, beside what importing torch alone takes."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.browser import ROOT, chromium, started, wait_until_healthy, window
from tests.bench.table import Row

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROUNDS = 3
PICTURE = ".js-plotly-plot .main-svg, .layers canvas"
VISITS = {
    "home page": "",
    "deep link, heads and layers": "heads_and_layers?kind=cross&layer=1&head=3",
}
PAINTED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
IMPORT = "import time; began = time.perf_counter(); import torch; print(time.perf_counter() - began)"


def coldstart(checkpoint: str, rounds: int = ROUNDS) -> Iterator[Row]:
    """Each round a new server for each visit, and a new process that imports torch."""
    with chromium() as browser:
        work: dict[str, Callable[[], float]] = {
            title: lambda path=path: first_picture(browser, path, checkpoint) for title, path in VISITS.items()
        }
        work = {"torch": import_torch} | work
        times = {name: [] for name in work}
        for number in range(rounds + 1):
            for name, measure in work.items():
                taken = measure()
                # The first round reads the files into the machine's memory.
                if number:
                    times[name].append(taken)
    torch = statistics.median(times.pop("torch"))
    for title, taken in times.items():
        median = statistics.median(taken)
        value = f"{median:.1f} s ({min(taken):.1f}-{max(taken):.1f})"
        yield Row(f"server started to first picture: {title}", value, f"import torch {torch:.1f} s", median / torch)


def import_torch() -> float:
    """Seconds, in a process of its own."""
    return float(subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, check=True, text=True).stdout)


def first_picture(browser: "Browser", path: str, checkpoint: str) -> float:
    """Seconds from the start of a server to the first painted picture at `path`."""
    page = window(browser)
    try:
        began = time.perf_counter()
        with started(Path(ROOT / "app.py")) as (address, server):
            wait_until_healthy(address, server)
            page.goto(f"{address}/{path}{'&' if '?' in path else '?'}checkpoint={checkpoint}")
            page.locator(PICTURE).first.wait_for()
            page.evaluate(PAINTED)
            return time.perf_counter() - began
    finally:
        page.context.close()
