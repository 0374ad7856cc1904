"""What the server computes in advance, in a thread that has no page."""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from logging.handlers import QueueHandler
from queue import SimpleQueue

import pytest
from streamlit.runtime.scriptrunner_utils import script_run_context

from model.checkpoints.devices import available_devices
from model.checkpoints.store import DEFAULT_CHECKPOINT
from pages.compute import queue
from pages.compute.cache import shared_cache
from pages.compute.runs import Request, check, open_translator, run
from pages.frame.sidebar.sidebar import FIRST_SENTENCE
from pages.frame.warm_up import warm_up

PATIENCE = 60
"""seconds until a test that hangs fails"""


@pytest.fixture
def warnings() -> Iterator[SimpleQueue]:
    """What Streamlit says of threads without a page, as long as the test runs."""
    heard: SimpleQueue = SimpleQueue()
    handler, logger = QueueHandler(heard), script_run_context._LOGGER
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING)
    yield heard
    logger.removeHandler(handler)
    logger.setLevel(level)


def in_a_thread(function, *args):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *args).result(PATIENCE)


@pytest.mark.usefixtures("checkpoint_folder", "fresh_caches")
def test_a_thread_without_a_page_computes_in_advance_and_draws_no_spinner(warnings: SimpleQueue) -> None:
    in_a_thread(warm_up)
    assert warnings.empty()
    kept = shared_cache().bytes
    device = available_devices()[0]
    opened = open_translator(DEFAULT_CHECKPOINT, device)
    assert all(each.passed for each in check(opened, run(opened, Request(FIRST_SENTENCE))))
    assert shared_cache().bytes == kept, "the first visitor finds all of it"


def test_without_a_page_a_place_in_line_is_not_drawn(monkeypatch: pytest.MonkeyPatch, warnings: SimpleQueue) -> None:
    class Busy:
        @contextmanager
        def turn(self, report: Callable[[int], None], *_: object) -> Iterator[None]:
            report(2)
            yield

    monkeypatch.setattr(queue, "model_queue", Busy)

    def wait() -> None:
        with queue.wait_for_turn():
            pass

    in_a_thread(wait)
    assert warnings.empty()
