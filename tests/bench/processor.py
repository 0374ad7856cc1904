"""Where the server's processor time goes: one visitor without a browser types sentences, moves, and opens pages."""

import json
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, cycle
from pathlib import Path

import torch

from model.checkpoints.store import load_checkpoint
from tests.bench.table import Row
from tests.soak.classroom import list_pages, write_sentence
from tests.soak.client import Session
from tests.soak.server import Server, serving

ROUNDS = 20
VISITS = 15
"""of each page"""
PARTS = ("search", "trace", "proof", "page script", "serialising")
SENTENCE = 2.5
"""times the processor time of Hugging Face's generate, which only translates, that a new sentence may take: it is
translated, run again with everything recorded, proved by further runs, and drawn. Where a translation takes 80 ms, that
is a fifth of a second, which the reader of a new answer does not notice."""
MOVE, PAGE = 10, 20
"""times the processor time of a rerun of plain Streamlit with one chart that another head and a whole page may take.
Where one chart takes 4 ms, a move takes at most 40 ms, and a page less than the tenth of a second from which on people
notice that they wait."""
ONE_CHART = Path(__file__).with_name("one_chart.py")
SETTLED = 0.2
"""seconds after which the server has sent all of a page"""


@dataclass(frozen=True)
class Beside:
    """What takes turns with the app's server, in another process."""

    name: str
    act: Callable[[], object]
    clock: Callable[[], float]
    """seconds of processor time so far"""


def processor(checkpoint: str, rounds: int = ROUNDS) -> Iterator[Row]:
    """A row for a new sentence, another head and each page, and a row for each part of the first two."""
    from tests.bench.engines import HuggingFace

    engine = HuggingFace(load_checkpoint(checkpoint, "cpu"))
    with (
        _on_one_thread(),
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder) / "clocked.log", module="tests.bench.clocked") as server,
        serving(Path(folder) / "plain.log", script=ONE_CHART) as plain,
    ):
        session, other = Session(server.port, checkpoint=checkpoint), Session(plain.port)
        session.open()
        chart = Beside("one chart, plain Streamlit", other.open, plain.seconds_of_work)
        sentences, heads = (write_sentence(number, 0) for number in count()), cycle(session.options("head"))
        typed: list[str] = []

        def type_sentence() -> float:
            typed.append(next(sentences))
            return session.change({"source": typed[-1]})

        generate = Beside("generate", lambda: engine.translate(typed[-1:], 4), time.process_time)
        acts = {
            "a new sentence": (type_sentence, generate, SENTENCE),
            "another head": (lambda: session.change({"head": next(heads)}), chart, MOVE),
        }
        for what, (act, beside, budget) in acts.items():
            _measure(server, act, beside, 3)
            spent, seconds = _measure(server, act, beside, rounds)
            yield _row(f"{what}, home page", spent, seconds, beside, budget)
            yield from _parts(what, spent)
        for page in list_pages():
            session.go(page)
            spent, seconds = _measure(server, lambda page=page: session.go(page), chart, VISITS)
            yield _row(f"the page {page}", spent, seconds, chart, PAGE)


def _measure(server: Server, act: Callable[[], float], beside: Beside, times: int) -> tuple[Counter[str], list[float]]:
    """Milliseconds of processor time by part, of one act on average, and seconds that each took."""
    before, spent, seconds = _told(server), Counter[str](), []
    for _ in range(times):
        spent["all"] -= server.seconds_of_work()
        seconds.append(act())
        time.sleep(SETTLED)
        spent["all"] += server.seconds_of_work()
        spent["beside"] -= beside.clock()
        beside.act()
        time.sleep(SETTLED)
        spent["beside"] += beside.clock()
    spent.update(_told(server))
    spent.subtract(before)
    return Counter({part: 1e3 * value / times for part, value in spent.items()}), seconds


def _told(server: Server) -> dict[str, float]:
    """Seconds by part so far, as the server printed them last."""
    lines = [line for line in server.log.read_text("utf-8").splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else {}


@contextmanager
def _on_one_thread() -> Iterator[None]:
    """As the server runs its model. A second thread would not be faster, and its waiting would count."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _row(what: str, spent: Counter[str], seconds: list[float], beside: Beside, budget: float) -> Row:
    value = f"{spent['all']:.0f} ms, {1e3 * statistics.median(seconds):.0f} ms to its last message"
    return Row(what, value, f"{beside.name} {spent['beside']:.1f} ms", spent["all"] / spent["beside"], budget)


def _parts(what: str, spent: Counter[str]) -> Iterator[Row]:
    for part in PARTS:
        if spent[part]:
            yield Row(f"{what}: {part}", f"{spent[part]:.1f} ms")
    yield Row(f"{what}: Streamlit", f"{spent['all'] - sum(spent[part] for part in PARTS):.1f} ms")
