"""Folders of families, written once a session: who changes one takes a copy."""

import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    from tests.model.checkpoints.huggingface.folders import save_family

    root = tmp_path_factory.mktemp("families")
    return cache(lambda name: save_family(root / name, name))


@pytest.fixture
def short_texts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever is searched ends after 12 tokens: translators of random weights write to the limit."""
    from model.checkpoints.huggingface.opened import HookedTranslator
    from tests.model.strategies import short_texts

    search = HookedTranslator._search

    def search_shorter(*arguments: Any) -> list[int]:
        *others, most = arguments
        return search(*others, min(most, 12))

    monkeypatch.setattr(HookedTranslator, "_search", search_shorter)
    with short_texts(12):
        yield


@pytest.fixture
def copy(saved: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """A folder of a family to change."""
    return lambda name: Path(shutil.copytree(saved(name), tmp_path / name))
