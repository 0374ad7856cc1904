"""The app while others compute, and on a GPU without memory."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from threading import Event, Thread

import numpy as np
import pytest
import torch
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.testing.v1 import local_script_runner

from model.checkpoints.store import load_checkpoint
from model.checkpoints.translator import Translator
from pages.compute import queue, runs
from tests.pages.figures import figure, numbers

pytestmark = pytest.mark.usefixtures("fresh_caches")

SENTENCE = "a dog and a cat"
PATIENCE = 60


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines that spinners have shown so far, in every session."""
    seen: list[str] = []
    enqueue = local_script_runner.LocalScriptRunner._enqueue_forward_msg

    def listen(runner: object, message: ForwardMsg) -> None:
        seen.extend(element.spinner.text for element in message.delta.new_transient.elements)
        enqueue(runner, message)

    monkeypatch.setattr(local_script_runner.LocalScriptRunner, "_enqueue_forward_msg", listen)
    return seen


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Iterator[Event]:
    """The only place is taken until the event is set."""
    one, begun, over = queue.Queue(1, most_waiting=1), Event(), Event()
    monkeypatch.setattr(queue, "model_queue", lambda: one)

    def work() -> None:
        with one.turn(lambda _: None):
            begun.set()
            over.wait(PATIENCE)

    worker = Thread(target=work)
    worker.start()
    assert begun.wait(PATIENCE)
    yield over
    over.set()
    worker.join()


def wait_for(condition: Callable[[], object]) -> None:
    assert any(condition() or Event().wait(0.02) for _ in range(PATIENCE * 50))


def test_who_waits_reads_how_many_are_before_and_then_sees_the_page(
    open_app: Callable, taken: Event, messages: list[str]
) -> None:
    opened: list = []
    visitor = Thread(target=lambda: opened.append(open_app(source=SENTENCE)))
    visitor.start()
    wait_for(lambda: "The model is busy: 1 request ahead of you" in messages)
    assert "The model is translating …" not in messages
    taken.set()
    visitor.join(PATIENCE)
    (app,) = opened
    assert app.markdown


def test_where_too_many_wait_the_page_says_try_again(open_app: Callable, taken: Event) -> None:
    line, left = queue.model_queue(), Event()

    class Left(Exception):
        pass

    def leave(_: int) -> None:
        if left.is_set():
            raise Left

    def wait() -> None:
        with pytest.raises(Left), line.turn(leave):
            pass

    waiting = Thread(target=wait)
    waiting.start()
    wait_for(lambda: line._waiting)
    app = open_app(source=SENTENCE)
    left.set()
    waiting.join(PATIENCE)
    assert [warning.value for warning in app.warning] == [
        "The model is busy: 1 request already waiting. Try again in a minute."
    ]
    assert not taken.is_set()


def test_a_session_that_closes_while_the_model_decodes_ends_the_work(
    open_app: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script thread is told to stop, as the server does when a connection ends, at the third step."""
    steps, decode = [], Translator.trace
    runners: list[local_script_runner.LocalScriptRunner] = []
    start = local_script_runner.LocalScriptRunner.start
    monkeypatch.setattr(
        local_script_runner.LocalScriptRunner, "start", lambda self: (runners.append(self), start(self))[1]
    )

    def trace(self: Translator, *args: object, **kwargs: object) -> object:
        from model import cancel

        ask = cancel._CHECK.get()
        assert ask is not None

        def closing() -> None:
            steps.append(1)
            if len(steps) == 3:
                runners[-1].request_stop()
            ask()

        with cancel.cancellable(closing):
            return decode(self, *args, **kwargs)

    monkeypatch.setattr(Translator, "trace", trace)
    app = open_app(source=SENTENCE)
    assert len(steps) == 3
    assert not app.get("plotly_chart")
    again = open_app(source=SENTENCE)
    assert len(steps) > 3
    assert again.get("plotly_chart")


def test_a_gpu_without_memory_leaves_the_run_to_the_cpu_and_the_page_says_so(
    open_app: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, device, trace = load_checkpoint(device="cpu"), Translator.device, Translator.trace
    tried = []

    def of(self: Translator) -> str:
        return device.fget(self) if hasattr(self.model, "moved") else "cuda:0"

    def on(self: Translator, where: str) -> Translator:
        assert where == "cpu"
        other = replace(self, model=load_checkpoint(device="cpu").model)
        other.model.moved = True
        return other

    def run(self: Translator, *args: object) -> object:
        tried.append(self.device)
        if self.device != "cpu":
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return trace(self, *args)

    for name, fake in (("device", property(of)), ("on", on), ("trace", run)):
        monkeypatch.setattr(Translator, name, fake)
    app = open_app(source=SENTENCE)
    assert tried == ["cuda:0", "cpu"]
    assert "cuda:0 had too little memory left: this page was computed on the CPU." in [i.value for i in app.info]
    app.run()
    assert tried == ["cuda:0", "cpu"], "the result is kept"
    certainty = numbers(figure(app, "translate-certainty")["data"][0]["y"])
    expected = trace(plain, SENTENCE, None, 4)
    np.testing.assert_array_equal(certainty, expected.target_probabilities)


def test_a_second_failure_is_not_hidden(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise torch.OutOfMemoryError("too little memory")

    monkeypatch.setattr(Translator, "trace", fail)
    with pytest.raises(torch.OutOfMemoryError):
        runs.run(translator, runs.Request(SENTENCE, None, 1, ()))
