"""The app with the file of a trace: its run, with how closely it agrees; other files are refused in a sentence."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from model.checkpoints.store import load_checkpoint
from model.interventions import AttentionTemperature, FrozenPattern, HeadGate
from model.trace import Trace
from pages.compute.trace_file import TRACE_VARIABLE, open_trace_file
from pages.frame.server.command_line import read_arguments
from tests.pages.figures import said

SOURCE = "Two dogs play."
CHANGES = (HeadGate(0.0, kind="cross", layer=1, head=2), AttentionTemperature(0.5, kind="encoder_self", layer=0))


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checkpoint_folder: Path) -> Iterator[Callable]:
    """Starts the app with the file of a trace."""
    assert checkpoint_folder.is_dir()
    monkeypatch.setenv(TRACE_VARIABLE, "")

    def start(trace: Trace) -> None:
        trace.save(tmp_path / "run.npz")
        read_arguments(["--trace", str(tmp_path / "run.npz")])

    yield start
    open_trace_file.cache_clear()


@pytest.mark.parametrize(
    ("target", "beam_size", "changes"), [(None, 4, ()), (None, 1, CHANGES), ("Zwei Hunde spielen.", 4, CHANGES)]
)
def test_the_app_begins_with_the_run_of_the_file(
    target: str | None, beam_size: int, changes: tuple, start: Callable, open_app: Callable
) -> None:
    wanted = load_checkpoint(device="cpu").trace(SOURCE, target, beam_size, changes)
    start(wanted)
    app = open_app("pages/translate.py")
    # Two runs in one process may differ by rounding.
    assert any(words in said(app) for words in ("arrays are equal, bit for bit", "float32 rounding explains this"))
    assert app.text_area(key="source").value == SOURCE
    assert ("remove-0" in [button.key for button in app.button]) == bool(changes)
    app.text_area(key="source").set_value("A cat sat.").run()
    assert "run.npz" not in said(app)
    asked_for_another = open_app("pages/translate.py", source="A cat sat.")
    assert asked_for_another.text_area(key="source").value == "A cat sat."
    assert "run.npz" not in said(asked_for_another)


def test_how_far_the_files_numbers_are_off_is_said(start: Callable, open_app: Callable) -> None:
    wanted = load_checkpoint(device="cpu").trace(SOURCE)
    logits = wanted.logits.copy()
    logits[0, 0] += np.abs(logits).max() / 2
    start(replace(wanted, logits=logits))
    text = said(open_app("pages/masks.py"))
    assert "rounding" not in text
    assert "arrays differ from the file's, most of all logits, by " in text


def test_a_run_that_the_app_cannot_show_is_refused_before_the_first_visitor(start: Callable, tmp_path: Path) -> None:
    wanted = load_checkpoint(device="cpu").trace(SOURCE, None, 1)
    frozen = FrozenPattern.of(wanted.attention("cross", 0).pattern, kind="cross", layer=0)
    other_tokens = load_checkpoint(device="cpu").trace_ids(SOURCE, (5, 5, 5, *wanted.next_ids), ())
    for trace, sentence in (
        (replace(wanted, checkpoint_hash="0" * 64), "no checkpoint here has these weights"),
        (replace(wanted, interventions=(frozen,)), "do not fit into a link"),
        (other_tokens, "the app cannot ask en-de for this run"),
    ):
        with pytest.raises(SystemExit, match=sentence):
            start(trace)
        open_trace_file.cache_clear()
    (tmp_path / "text.npz").write_text("hello")
    for name, sentence in (("text.npz", "text.npz is not the file of a trace"), ("missing.npz", "missing.npz")):
        with pytest.raises(SystemExit, match=sentence):
            read_arguments(["--trace", str(tmp_path / name)])
