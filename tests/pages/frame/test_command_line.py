"""What is wrong with the command line is said in a sentence, and the app does not start."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from model.checkpoints.store import MODELS_VARIABLE
from pages.frame.server.command_line import read_arguments
from pages.frame.server.start import open_browser

APP = Path(__file__).resolve().parents[3] / "app.py"


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["--trace", "{folder}/run.npz"], 1, "--trace: {folder}/run.npz is not the file of a trace"),
        (["--trace", "{folder}/none.npz"], 1, "--trace: [Errno 2] No such file or directory"),
        (["--model", "no/such:model", "--download"], 1, "--model: no/such:model could not be downloaded"),
        (["--model", "{folder}/none"], 1, "--model: {folder}/none: there is no such folder"),
        (["--model", "none/at-all"], 1, "--model: none/at-all is neither a folder nor in the local Hugging Face cache"),
        (["--model", "{folder}/run.gguf"], 1, "--model: {folder} holds a model for llama.cpp (GGUF) (run.gguf)"),
        (["--modle", "gpt2"], 2, "error: unrecognized arguments: --modle gpt2"),
    ],
)
def test_a_wrong_argument_is_said_in_its_sentence(arguments, status, sentence, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setenv(MODELS_VARIABLE, "")  # which the arguments add to, and which is as it was after the test
    for name in ("run.npz", "run.gguf"):
        (tmp_path / name).write_text("hello")
    with pytest.raises(SystemExit) as ended:
        read_arguments([argument.format(folder=tmp_path) for argument in arguments])
    said = sentence.format(folder=tmp_path)
    if isinstance(ended.value.code, str):  # Python prints it, and ends with 1
        assert status == 1
        assert said in ended.value.code
    else:
        assert ended.value.code == status
        assert said in capsys.readouterr().err


def test_an_app_with_a_wrong_argument_does_not_start() -> None:
    command = [sys.executable, "-m", "streamlit", "run", str(APP), "--server.headless", "true", "--server.port", "0"]
    run = subprocess.run(
        [*command, "--", "--modle", "gpt2"],  # which is known before anything large is imported
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
    )
    assert run.returncode == 2
    assert "error: unrecognized arguments: --modle gpt2" in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize("screen", ["", "DISPLAY", "WAYLAND_DISPLAY"])
def test_the_browser_is_opened_where_there_is_a_screen(screen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("sys.platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.setenv(name, ":0" if name == screen else "")
    open_browser()
    assert len(opened) == bool(screen)
    assert all(address.startswith("http://localhost:") for address in opened)


def test_only_who_starts_the_app_at_the_machine_has_its_browser_opened() -> None:
    assert read_arguments(["--browser"])
    assert not read_arguments([])
    assert "-- --local --browser\n" in (APP.parent / "Makefile").read_text("utf-8")
