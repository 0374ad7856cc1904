"""What breaks in the middle: the server is killed, training is killed, the disk is full.

That a full GPU leads back to the CPU is in tests/pages/compute/test_busy_pages.py.
"""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from tests.model.tiny import SENTENCES
from tests.soak.client import Session
from tests.soak.load import Answer
from tests.soak.server import ROOT, Server

KILLS = 20
SAVES = 5
"""steps from one save to the next"""
TRAINING = {"max_tokens": 60, "evaluate_every": SAVES, "vocab_size": 360, "max_len": 40, "average": 2}
MOST_SAVES = 3
"""of its state, before a training run is killed"""
ENVIRONMENT = os.environ | {
    "PYTHONPATH": str(ROOT),
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
    "CUDA_VISIBLE_DEVICES": "",
}

FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from model.checkpoints.store import load_checkpoint, save_checkpoint
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
translator, folder = load_checkpoint(sys.argv[1], "cpu"), Path(sys.argv[1])
weights = {name: weight + 1 for name, weight in translator.model.named_parameters()}
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    save_checkpoint(folder, translator.model, translator.tokenizer, weights)
except Exception as error:
    print(type(error).__name__, error)
    sys.exit(3)
"""


def server_killed(folder: Path, checkpoints: Path | None = None, sessions: int = 3) -> list[str]:
    """The URL brings each session's view back from a server that was killed in the middle of its work."""
    server, problems = Server(folder / "killed.log", checkpoints), []
    server.start()
    try:
        links = [_link(number) for number in range(sessions)]
        before = []
        for link in links:
            session = Session(server.port, **link)
            session.open()
            before.append((session, Answer.shown(session)))
        for session, _ in before:
            session.ask({"source": "Nobody will ever read the answer to this."})
        server.kill()
        server.start()
        for link, (_, seen) in zip(links, before, strict=True):
            session = Session(server.port, **link)
            session.open()
            if session.problems() or not Answer.shown(session).same(seen):
                problems.append(f"after a restart {link} shows something else: {session.problems()}")
            session.close()
    finally:
        server.stop()
    return problems


def training_killed(folder: Path, kills: int = KILLS, seed: int = 0) -> list[str]:
    """A run that is killed at random moments, and resumed, ends with the very weights of one that is left alone."""
    rng, run = random.Random(seed), _trainer(folder, TRAINING | {"steps": SAVES * (MOST_SAVES + 2) * kills})
    for kill in range(kills):
        process = run("killed")
        _live(process, folder / "killed" / "state.pt", rng)
        if process.poll() is not None:
            return [f"training ended by itself, with {process.returncode}, before kill {kill}"]
        process.kill()
        process.wait()
    for name in ("killed", "whole"):
        if run(name).wait():
            return [f"training {name} ended with an error"]
    one, other = (torch.load(folder / name / "state.pt", weights_only=True) for name in ("killed", "whole"))
    different = [name for name, weight in one["model"].items() if not torch.equal(weight, other["model"][name])]
    files = [
        name
        for name in ("model.safetensors", "config.json")
        if (folder / "killed" / name).read_bytes() != (folder / "whole" / name).read_bytes()
    ]
    print(f"training: killed {kills} times, {len(different)} tensors and {len(files)} files differ from the whole run")
    return [f"killed and whole runs differ in {name}" for name in different + files]


def disk_full(checkpoint: Path, room: int) -> list[str]:
    """Writing a checkpoint where only `room` bytes of a file fit fails, and leaves the old one whole."""
    files = {path: path.read_bytes() for path in checkpoint.iterdir() if path.is_file()}
    found = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(checkpoint), str(room)],
        env=ENVIRONMENT,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    after = {path: path.read_bytes() for path in checkpoint.iterdir() if path.is_file()}
    problems = [f"saving did not fail: {found.returncode} {found.stderr}"] * (found.returncode != 3)
    return problems + [
        f"{path.name} changed" for path in files.keys() | after.keys() if files.get(path) != after.get(path)
    ]


def main(folder: Path, checkpoint: Path) -> list[str]:
    """Print a line for each fault; returns what went wrong."""
    parts: dict[str, Callable[[], list[str]]] = {
        "server killed and restarted": lambda: server_killed(folder),
        f"training killed {KILLS} times": lambda: training_killed(folder),
        "disk full while a checkpoint is saved": lambda: disk_full(checkpoint, 100_000),
    }
    problems = []
    for name, part in parts.items():
        began = time.monotonic()
        found = part()
        print(f"{name}: {'FAILED' if found else 'nothing lost'} ({time.monotonic() - began:.0f} s)")
        problems += found
    return problems


def _live(process: subprocess.Popen, state: Path, rng: random.Random) -> None:
    """Wait until the run has saved its state a few times, and then for a part of the time that this takes."""
    saved, began, interval = _saved(state), time.monotonic(), 0.0
    for _ in range(rng.randint(2, MOST_SAVES)):
        while _saved(state) == saved and process.poll() is None:
            time.sleep(0.005)
        saved, now = _saved(state), time.monotonic()
        interval, began = now - began, now
    time.sleep(rng.random() * interval)


def _saved(state: Path) -> int:
    return state.stat().st_mtime_ns if state.exists() else 0


def _link(number: int) -> dict[str, str]:
    return {"source": f"There are {number + 2} cats in the house.", "tau": "0.5", "kind": "Cross-attention"}


def _trainer(folder: Path, options: dict[str, float]) -> Callable[[str], subprocess.Popen]:
    pairs, dev = folder / "pairs.tsv", folder / "dev.tsv"
    pairs.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in SENTENCES), encoding="utf-8")
    dev.write_text("A dog runs.\tEin Hund rennt.\n", encoding="utf-8")
    fixed = ["--train", str(pairs), "--dev", str(dev), "--device", "cpu", "--resume", "--sampling=0.2", "--dropout=0.3"]
    named = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]

    def run(name: str) -> subprocess.Popen:
        command = [sys.executable, "-m", "model.train", *fixed, *named, "--out", str(folder / name)]
        return subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    return run
