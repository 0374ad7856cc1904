"""What is wrong with the command line is said in a sentence, and the app does not start."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("streamlit")

APP = Path(__file__).resolve().parents[3] / "app.py"


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["--trace", "{folder}/run.npz"], 1, "--trace: {folder}/run.npz is not the file of a trace"),
        (["--trace", "{folder}/none.npz"], 1, "--trace: [Errno 2] No such file or directory"),
        (["--model", "no/such:model", "--download"], 1, "--model: no/such:model could not be downloaded"),
        (["--modle", "gpt2"], 2, "error: unrecognized arguments: --modle gpt2"),
    ],
)
def test_a_wrong_argument_ends_the_start_with_its_sentence(arguments, status, sentence, tmp_path) -> None:
    (tmp_path / "run.npz").write_text("hello")
    arguments = [argument.format(folder=tmp_path) for argument in arguments]
    command = [sys.executable, "-m", "streamlit", "run", str(APP), "--server.headless", "true", "--server.port", "0"]
    offline = os.environ | {"HF_HUB_OFFLINE": "1"}
    run = subprocess.run([*command, "--", *arguments], capture_output=True, text=True, timeout=300, env=offline)
    assert run.returncode == status
    assert sentence.format(folder=tmp_path) in run.stderr
    assert "Traceback" not in run.stderr
