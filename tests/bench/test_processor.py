"""Processor time of the app and of what takes turns with it are kept apart."""

import json
import os
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.bench import processor
from tests.soak.server import Server


class Worker:
    """A process that works a given number of seconds whenever it is asked."""

    def __init__(self, log: Path, seconds: float) -> None:
        self.log, self.seconds, self.worked = log, seconds, 5.0
        self.log.touch()

    def seconds_of_work(self) -> float:
        return self.worked

    def work(self) -> float:
        self.worked += self.seconds
        with self.log.open("a", encoding="utf-8") as log:
            log.write(json.dumps({"search": self.worked / 2, "trace": self.worked / 4}) + "\n")
        return 2 * self.seconds


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], Worker]:
    monkeypatch.setattr(processor, "SETTLED", 0)
    numbers = count()
    return lambda seconds: Worker(tmp_path / f"{next(numbers)}.log", seconds)


@pytest.mark.parametrize("times", [1, 7])
def test_each_act_is_charged_to_who_did_it(worker: Callable[[float], Worker], times: int) -> None:
    ours, other = worker(0.03), worker(0.01)
    ours.work()
    beside = processor.Beside("another", other.work, other.seconds_of_work)
    spent, seconds = processor._measure(ours, ours.work, beside, times)
    assert spent == pytest.approx({"all": 30, "beside": 10, "search": 15, "trace": 7.5})
    assert seconds == [0.06] * times
    row = processor._row("an act", spent, seconds, beside, budget=2.5)
    assert row.ratio == pytest.approx(3)
    assert row.verdict == "MISSED"


def test_parts_and_the_rest_add_up_to_the_whole(worker: Callable[[float], Worker]) -> None:
    ours, other = worker(0.03), worker(0.01)
    ours.work()
    spent, _ = processor._measure(ours, ours.work, processor.Beside("another", other.work, other.seconds_of_work), 3)
    parts = {row.what: float(row.value.split()[0]) for row in processor._parts("an act", spent)}
    assert list(parts) == ["an act: search", "an act: trace", "an act: Streamlit"]
    assert sum(parts.values()) == pytest.approx(30)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not show another process's clock")
def test_the_processor_time_of_a_process_is_that_of_its_own_clock(tmp_path: Path) -> None:
    server = Server(tmp_path / "log.txt")
    server.process = SimpleNamespace(pid=os.getpid())
    before = time.process_time()
    spent = server.seconds_of_work()
    assert before <= spent <= time.process_time()
