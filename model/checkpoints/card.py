"""What a checkpoint's folder documents besides the weights: scores, training log, README.md, file sizes."""

import csv
import json
import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any

from model.checkpoints.files import find_file, read_text
from model.language import Numeral, Refusal, Sentence, later, sentence


@dataclass(frozen=True)
class Score:
    """One score in metrics.json, and how it was measured."""

    dataset: str
    metric: str
    value: float
    beam_size: int
    signature: str
    """sacreBLEU's; of other metrics, how much text was scored"""
    plus_minus: float | None = None
    """half the width of the 95% interval; None: none was recorded"""


@dataclass(frozen=True)
class Card:
    """The contents of the folder's files; `missing` explains each one that is missing or unreadable."""

    scores: tuple[Score, ...]
    log: tuple[Mapping[str, float], ...]
    """rows of log.csv in order, by column; empty cells are left out"""
    readme: str
    """Markdown, written by whoever trained the checkpoint"""
    folder: Path
    weights_hash: str
    """SHA-256 of the weights according to config.json"""
    missing: Mapping[str, Sentence]
    """by file name"""

    @cached_property
    def files(self) -> Mapping[str, int]:
        """Bytes by name; the files of a sub-folder are summed as `name/`. Most pages ask for none."""
        return _sizes(self.folder)


def in_digits(metric: str, value: float, plus_minus: float | None = None) -> Numeral:
    """A score with as many digits as its metric is reported with, and its interval."""
    text = f"{value:.{digits(metric)}f}"
    return Numeral(text if plus_minus is None else f"{text} ± {plus_minus:.{digits(metric)}f}")


def digits(metric: str) -> int:
    """Digits after the point with which a metric is reported."""
    return 2 if metric.endswith(("BLEU", "chrF2")) else 4


MOST_FILES = 10_000
"""of a folder, whose sizes are told"""
_UNREADABLE = (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError, ArithmeticError, csv.Error)
"""what reading a file of any content may raise"""


def read_card(folder: Path) -> Card:
    """Read what a checkpoint's folder has besides its weights; a missing or broken file raises no error.

    The small checkpoints in studies/ share one README.md there.
    """
    missing: dict[str, Sentence] = {}

    def read(name: str, parse: Callable[[str], Any], without: str) -> Any:
        try:
            shared = name == "README.md" and folder.parent.name == "studies"
            return parse(read_text((folder.parent if shared else folder) / name))
        except FileNotFoundError:
            missing[name] = sentence("This checkpoint has no {name}: {without}", name=name, without=sentence(without))
        except _UNREADABLE:
            missing[name] = sentence(
                "This checkpoint's {name} cannot be read: {without}", name=name, without=sentence(without)
            )
        return parse("{}" if name.endswith(".json") else "")

    return Card(
        scores=read(
            "metrics.json",
            _scores,
            later("its quality is not documented. python -m model.evaluate … --record SET writes it."),
        ),
        log=read("log.csv", _log, later("its training is not documented. python -m model.train writes it.")),
        readme=read("README.md", str, later("its training data, licence terms and limits are not documented.")),
        folder=folder,
        weights_hash=read("config.json", _weights_hash, later("nothing identifies its weights.")),
        missing=missing,
    )


def evaluate_command(checkpoint: str, dataset: str, scores: tuple[Score, ...]) -> str:
    """The command that measures and records a data set's `scores`; FILE and REFERENCE stand for the files, which
    metrics.json does not name."""
    of_set = [score for score in scores if score.dataset == dataset]
    command = ["python", "-m", "model.evaluate", "--checkpoint", checkpoint, "--data", "FILE"]
    if any(score.metric.endswith("BLEU") for score in of_set):
        command += ["--beam-size", str(of_set[0].beam_size)]
    if any(score.metric.endswith(" BLEU") for score in of_set):
        command += ["--lowercased-reference", "REFERENCE"]
    return shlex.join([*command, "--record", dataset])


def _scores(text: str) -> tuple[Score, ...]:
    return tuple(
        Score(
            dataset,
            metric,
            _finite(found["value"]),
            int(measured["beam_size"]),
            str(found["signature"]),
            _finite(found["plus_minus"]) if "plus_minus" in found else None,
        )
        for dataset, measured in json.loads(text).items()
        for metric, found in measured["scores"].items()
    )


@lru_cache(8)
def _log(text: str) -> tuple[dict[str, float], ...]:
    return tuple(
        {column: _finite(cell) for column, cell in row.items() if cell} for row in csv.DictReader(text.splitlines())
    )


def _finite(value: Any) -> float:
    if not isfinite(number := float(value)):
        raise Refusal("{value!r} is not a finite number", value=value)
    return number


def _weights_hash(text: str) -> str:
    return str(json.loads(text).get("sha256", {}).get("model.safetensors", ""))


def _sizes(folder: Path) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for path in sorted(islice(folder.rglob("*"), MOST_FILES)):
        with suppress(OSError):
            if not path.is_file() or path.name.endswith((".tmp", ".new")):
                continue
            size = find_file(path, folder).stat().st_size
            parts = path.relative_to(folder).parts
            name = parts[0] if len(parts) == 1 else f"{parts[0]}/"
            sizes[name] = sizes.get(name, 0) + size
    return sizes
