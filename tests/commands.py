"""python -m tests.commands: do what README, CONTRIBUTING and docs say, command by command, in a fresh copy.

Each command is printed with its exit status, its seconds and the end of its output. Files that a command reads are
made first, as small as they may be; a command that never ends, or takes hours, is made shorter (`SHORTER`). What
cannot be tried on every machine is named with its reason (`NOT_HERE`). tests/test_commands.py runs those of a minute;
this also runs `make`, which installs everything anew.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from model.checkpoints import load_checkpoint
from tests.soak.server import free_port

ROOT = Path(__file__).parents[1]
PROGRAMS = ("make", "python", "python3", "pip", "streamlit", "uvx", "docker", "torchrun", "rsync", "pip-audit", ".")
NOT_HERE = {
    r"docker|REPLICAS": "needs a container engine",
    r"uvx|git\+URL": "fetches the project from its address, and PyTorch anew: see docs/deploy.md for both sizes",
    r"PIP_EXTRA_INDEX_URL|\.\.\.|\bA B\b|--alignment$|make site$": "has a place that the reader fills in",
    r"torchrun": "needs several processors",
    r"rsync": "needs a web server",
    r"pip-audit": "asks a database on the Internet",
    r"pip (install|download)|\. \.venv|python3 -m venv|downloads/|openai-community": "loads packages or models",
    r"make (test|check|lint|words|bench|soak|heads)|ARGS=|tests\.bench": "is what runs these very tests, or takes long",
    r"make (format|re\w+)|tests\.(sweep|film)": "changes files, or takes long",
    r"make test-gpu": "needs a GPU",
    r"mixture|start-from|multi30k|tatoeba-dev|test2016|ablations|--lmplz": "reads texts that are not in the project",
    r"warm_up|norm_and_residual|training\.(digits|recurrence|recall|curves)|model\.induction": "trains for hours",
    r"\bmine\b.*(head_scores|--answers)|head_scores|steps 1500|reverse": "a test of its own trains and measures it",
}
"""what is in the command -> why it is not run"""
SHORTER = {
    r"--minutes 60": "--steps 2 --vocab-size 400 --evaluate-every 2",
    r"(--preset lm .*)/mine\b": r"\1/mine-lm --steps 1 --vocab-size 400",
    r"\bDIR\b": "out",
    r"path/to/(folder|marian)": "checkpoints/en-de",
    r"\bFILE\b": "sentences.txt",
    r"LANG\.html": "page.html",
    r"\bLANG\b": "de",
}
"""what a reader fills in, or waits for -> what stands there here"""
SERVES = re.compile(r"streamlit run|make run|http\.server")
PATIENCE = 900
"""seconds for a server to answer, or a command to end: the first `make` installs PyTorch"""


@dataclass(frozen=True)
class Command:
    """As printed in a document, without its comment."""

    document: str
    words: str

    @property
    def not_here(self) -> str:
        """Why it is not run; empty: it is."""
        return next((why for what, why in NOT_HERE.items() if re.search(what, self.words)), "")

    @property
    def shorter(self) -> str:
        """As it is run."""
        words = self.words
        for what, instead in SHORTER.items():
            words = re.sub(what, instead, words)
        return words


@dataclass(frozen=True)
class Outcome:
    """What running a command gave."""

    status: int
    seconds: float
    output: str


def commands(document: Path) -> list[Command]:
    """Those in its blocks of code, and those in a sentence that have more than a program's name."""
    text = document.read_text("utf-8")
    blocks = [block for language, block in re.findall(r"```(\w*)\n(.*?)```", text, re.DOTALL) if language in ("", "sh")]
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    prose = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    name = document.relative_to(ROOT).as_posix()
    found = [re.sub(r"\s+#.*|\s+", lambda part: "" if "#" in part[0] else " ", line).strip() for line in lines]
    found += [each for each in prose if " " in each and not re.fullmatch(r"python -m [\w.]+", each)]
    return [Command(name, words) for words in dict.fromkeys(found) if _program(words) in PROGRAMS]


def _program(words: str) -> str:
    """The first word that sets no variable."""
    return next((word for word in words.split() if not re.match(r"[A-Z_]+=", word)), "")


def copy_project(folder: Path) -> None:
    """What a fresh clone has, and the small files that the commands read."""
    skipped = shutil.ignore_patterns("__pycache__", ".*_cache", ".git", ".venv*")
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
        elif path.name != "checkpoints" and not skipped(str(ROOT), [path.name]):
            shutil.copytree(path, folder / path.name, ignore=skipped)
    (folder / "checkpoints").mkdir()
    for checkpoint in (ROOT / "checkpoints").iterdir():
        (folder / "checkpoints" / checkpoint.name).symlink_to(checkpoint)
    pairs = (ROOT / "checkpoints/en-de/short-phrases.tsv").read_text("utf-8").splitlines()[:80]
    sources = [pair.partition("\t")[0] for pair in pairs]
    trace = load_checkpoint("multi30k-tiny").trace("A man sits on a bench.")
    for name in ("run.npz", "other.npz", "before.npz", "after.npz"):
        trace.save(folder / name)
    for name in ("before", "after"):
        (folder / name).symlink_to(ROOT / "checkpoints/en-de")
    for name, lines in {
        "train.tsv": pairs,
        "dev.tsv": pairs[:4],
        "pairs.tsv": pairs[:4],
        "text.txt": sources,
        "dev.txt": sources[:4],
        "sentences.txt": sources[:4],
        "in.txt": sources[:2],
        "links.txt": ["1-1"] * 4,
    }.items():
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def run(command: Command, folder: Path) -> Outcome:
    """Run it in the folder; one that serves is stopped once it has answered."""
    port = free_port()
    words = command.shorter
    shutil.rmtree(folder / "out", ignore_errors=True)  # most commands write to DIR, and only where nothing is
    serves = SERVES.search(words)
    if serves:
        words = re.sub(r"run app\.py", f"run app.py --server.headless true --server.port {port}", words)
        words = re.sub(r"http\.server", f"http.server {port}", words)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PORT": str(port), "OMP_NUM_THREADS": "1", "BROWSER": "true"}
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as output, open(folder / "in.txt", "rb") as typed:
        pipes = {"stdin": typed, "stdout": output, "stderr": output}
        started = subprocess.Popen(words, shell=True, cwd=folder, env=environment, start_new_session=True, **pipes)
        try:
            status = _wait_until_it_answers(port, started) if serves else started.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            status = -1
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGTERM)
            started.wait(20)
        output.seek(0)
        return Outcome(status, time.monotonic() - began, output.read())


def _wait_until_it_answers(port: int, server: subprocess.Popen) -> int:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/"):
                return 0
        except OSError:
            time.sleep(0.2)
    return server.poll() or -1


def all_commands() -> list[Command]:
    """README's, CONTRIBUTING's and those of docs/, each once."""
    documents = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))
    found = [command for document in documents for command in commands(document)]
    return [command for at, command in enumerate(found) if command.shorter not in {one.shorter for one in found[:at]}]


def main() -> None:
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        copy_project(Path(folder))
        for command in all_commands():
            if command.not_here:
                print(f"not run     {command.document}: {command.words}\n            it {command.not_here}", flush=True)
                continue
            done = run(command, Path(folder))
            failed += done.status != 0
            last = (done.output.strip().splitlines() or [""])[-1]
            print(f"{done.status:>3} {done.seconds:5.1f} s {command.document}: {command.words}", flush=True)
            print(f"            {last[:150]}", flush=True)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
