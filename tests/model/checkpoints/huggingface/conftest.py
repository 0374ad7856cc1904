"""Folders of families, written once a session: who changes one takes a copy."""

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    from tests.model.checkpoints.huggingface.folders import save_family

    root = tmp_path_factory.mktemp("families")
    return cache(lambda name: save_family(root / name, name))


@pytest.fixture
def copy(saved: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """A folder of a family to change."""
    return lambda name: Path(shutil.copytree(saved(name), tmp_path / name))
