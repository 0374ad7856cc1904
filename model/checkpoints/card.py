"""What a checkpoint's folder says of itself besides the weights: scores, log, its own README.md, sizes of files."""

import csv
import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Score:
    """One number of metrics.json, with what it was measured by."""

    dataset: str
    metric: str
    value: float
    beam_size: int
    signature: str
    """sacreBLEU's"""


@dataclass(frozen=True)
class Card:
    """The folder's files, read; `missing` says of each that is not there, or not readable, what that means."""

    scores: tuple[Score, ...]
    log: tuple[Mapping[str, float], ...]
    """rows of log.csv in their order, by column; an empty cell is left out"""
    readme: str
    """Markdown, by whoever trained the checkpoint"""
    files: Mapping[str, int]
    """bytes, by name; a folder's files together, as `name/`"""
    weights_hash: str
    """SHA-256 of the weights, as config.json says now"""
    missing: Mapping[str, str]
    """by name of the file: a sentence"""


def read_card(folder: Path) -> Card:
    """Read what a checkpoint's folder has beside its weights. Nothing that is missing or broken raises an error."""
    missing: dict[str, str] = {}

    def read(name: str, parse: Callable[[str], Any], without: str) -> Any:
        try:
            return parse((folder / name).read_text(encoding="utf-8"))
        except FileNotFoundError:
            missing[name] = f"This checkpoint has no {name}: {without}"
        except (
            OSError,
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            RecursionError,
            ArithmeticError,
            csv.Error,
        ):
            missing[name] = f"This checkpoint's {name} cannot be read: {without}"
        return parse("{}" if name.endswith(".json") else "")

    return Card(
        scores=read(
            "metrics.json", _scores, "nothing says how good it is. python -m model.evaluate … --record SET writes it."
        ),
        log=read("log.csv", _log, "nothing says how its training went. python -m model.train writes it."),
        readme=read("README.md", str, "nothing says what it was trained on, under which terms, and where it fails."),
        files=_sizes(folder),
        weights_hash=read("config.json", _weights_hash, "nothing says which weights belong to it."),
        missing=missing,
    )


def evaluate_command(checkpoint: str, dataset: str, scores: tuple[Score, ...]) -> str:
    """The command line that prints a data set's `scores` and keeps them; metrics.json does not name the files,
    so FILE and REFERENCE stand for them."""
    of_set = [score for score in scores if score.dataset == dataset]
    command = ["python", "-m", "model.evaluate", "--checkpoint", checkpoint, "--data", "FILE"]
    command += ["--beam-size", str(of_set[0].beam_size)]
    if any(score.metric != "BLEU" for score in of_set):
        command += ["--lowercased-reference", "REFERENCE"]
    return shlex.join([*command, "--record", dataset])


def _scores(text: str) -> tuple[Score, ...]:
    return tuple(
        Score(dataset, metric, _finite(found["value"]), int(measured["beam_size"]), str(found["signature"]))
        for dataset, measured in json.loads(text).items()
        for metric, found in measured["scores"].items()
    )


def _log(text: str) -> tuple[dict[str, float], ...]:
    return tuple(
        {column: _finite(cell) for column, cell in row.items() if cell} for row in csv.DictReader(text.splitlines())
    )


def _finite(value: Any) -> float:
    if not isfinite(number := float(value)):
        raise ValueError(f"{value!r} is no number that can be drawn")
    return number


def _weights_hash(text: str) -> str:
    return str(json.loads(text).get("sha256", {}).get("model.safetensors", ""))


def _sizes(folder: Path) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.endswith((".tmp", ".new")):
            parts = path.relative_to(folder).parts
            name = parts[0] if len(parts) == 1 else f"{parts[0]}/"
            sizes[name] = sizes.get(name, 0) + path.stat().st_size
    return sizes
