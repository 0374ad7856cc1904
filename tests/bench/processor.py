"""Where the server's processor time goes: one visitor without a browser types sentences, moves, and opens pages."""

import json
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

from tests.bench.table import Row
from tests.soak.classroom import list_pages, write_sentence
from tests.soak.client import Session
from tests.soak.server import Server

ROUNDS = 20
VISITS = 5
"""of each page"""
PARTS = ("search", "trace", "proof", "page script", "serialising")
SENTENCE_MS, MOVE_MS, PAGE_MS = 180, 30, 250
"""goals: processor time of a new sentence and of a move; from opening a page to the server's last message"""
SETTLED = 0.2
"""seconds after which the server has sent all of a page"""


def processor(checkpoint: str, rounds: int = ROUNDS) -> Iterator[Row]:
    """A row a part of a new sentence and of a move on the home page, and a row a page."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder) / "clocked.log", module="tests.bench.clocked")
        server.start()
        try:
            session = Session(server.port, checkpoint=checkpoint)
            session.open()
            heads = cycle(session.options("head"))
            sentences = (write_sentence(number, 0) for number in range(10**6))
            asked = {
                "a new sentence": (lambda: session.change({"source": next(sentences)}), SENTENCE_MS),
                "another head": (lambda: session.change({"head": next(heads)}), MOVE_MS),
            }
            for what, (act, goal) in asked.items():
                _measure(server, act, 3)
                yield from _rows(what, _measure(server, act, rounds)[0], goal)
            for page in list_pages():
                session.go(page)
                spent, seconds = _measure(server, lambda page=page: session.go(page), VISITS)
                whole = 1e3 * statistics.median(seconds)
                work = f"{spent['all']:.0f} ms of processor time"
                yield Row(f"the page {page}", work, "to its last message", whole, PAGE_MS, unit="ms")
        finally:
            server.stop()


def _measure(server: Server, act: Callable[[], float], times: int) -> tuple[Counter[str], list[float]]:
    """Milliseconds of processor time by part, of one act on average, and seconds that each took."""
    before, worked, seconds = _told(server), server.seconds_of_work(), []
    for _ in range(times):
        seconds.append(act())
        time.sleep(SETTLED)
    spent = Counter(_told(server))
    spent.subtract(before)
    spent["all"] = server.seconds_of_work() - worked
    return Counter({part: 1e3 * value / times for part, value in spent.items()}), seconds


def _told(server: Server) -> dict[str, float]:
    """Seconds by part so far, as the server printed them last."""
    lines = [line for line in server.log.read_text("utf-8").splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else {}


def _rows(what: str, spent: Counter[str], goal: float) -> Iterator[Row]:
    yield Row(f"{what}, home page", f"{spent['all']:.0f} ms", ratio=spent["all"], budget=goal, unit="ms")
    for part in PARTS:
        if spent[part]:
            yield Row(f"{what}: {part}", f"{spent[part]:.1f} ms")
    yield Row(f"{what}: Streamlit", f"{spent['all'] - sum(spent[part] for part in PARTS):.1f} ms")
