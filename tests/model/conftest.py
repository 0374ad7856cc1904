"""What tests of the model share: random state, a run, models of random weights, a checkpoint to change, texts."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from model.checkpoints.translator import Translator
    from model.trace import Trace


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    import torch

    torch.manual_seed(0)
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def trace(translator: "Translator") -> "Trace":
    """A run of the trained tiny model, with repeated words on both sides."""
    return translator.trace("a dog and a cat", "Ein Hund mit einer Katze.")


@pytest.fixture(scope="session")
def runs(translator: "Translator") -> "list[Trace]":
    """A run of each sentence pair."""
    from tests.model.tiny import SENTENCES

    return [translator.trace(*pair) for pair in SENTENCES]


@pytest.fixture(scope="session", params=("post", "pre"))
def double(request, tiny_config, tokenizer) -> "Translator":
    """Random weights in double precision, with the norm after each sub-layer, as in the paper, or before it."""
    import torch

    from tests.model.tiny import random_checkpoint

    return random_checkpoint(replace(tiny_config, norm=request.param), tokenizer, torch.float64)


@pytest.fixture
def folder(saved_checkpoints: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkpoint of one's own to change or damage, alone where the code looks for checkpoints."""
    from model.checkpoints.store import CHECKPOINTS_VARIABLE, DEFAULT_CHECKPOINT

    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(tmp_path / "checkpoints"))
    shutil.copytree(saved_checkpoints, tmp_path / "checkpoints")
    return tmp_path / "checkpoints" / DEFAULT_CHECKPOINT


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A file of the sentence pairs."""
    from tests.model.tiny import write_pairs

    return write_pairs(tmp_path / "pairs.tsv")


@pytest.fixture
def few_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    """The task of reversing letters writes few lines."""
    from model.training import reversal_task

    monkeypatch.setattr(reversal_task, "TRAIN_LINES", 400)
    monkeypatch.setattr(reversal_task, "DEV_LINES", 5)
