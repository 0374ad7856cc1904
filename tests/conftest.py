"""What all tests share: the trained tiny model of tests/fixture, and what happens when a package is missing.

Everything that needs a package is imported inside a fixture, so that a missing one skips only the tests that need it.
"""

import gc
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from model.checkpoints.tokenizer import Tokenizer
    from model.checkpoints.translator import Translator
    from model.network.config import TransformerConfig
    from model.network.encoder_decoder import Transformer

FIXTURE = Path(__file__).parent / "fixture"
OURS = {"app", "model", "pages", "tests", "viz"}


def skip_for_missing_package(error: BaseException | None, where: str) -> None:
    """Skip, by its name, what a package that is not installed keeps from running; with CI=true let it fail."""
    if isinstance(error, ModuleNotFoundError) and os.environ.get("CI") != "true":
        package = (error.name or "").split(".")[0]
        if package not in OURS:
            pytest.skip(f"{where} needs {package}, which is not installed", allow_module_level=True)


class TestFile(pytest.Module):
    """A file of tests that is skipped where a package that it imports is not installed."""

    __test__ = False

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        try:
            yield from super().collect()
        except self.CollectError as error:
            skip_for_missing_package(error.__cause__, self.nodeid)
            raise


def pytest_configure() -> None:
    """Waiting threads yield the processor; hypothesis tries 10 examples of a property, or 30 with CI=true."""
    # PyTorch reads these when it is imported. Beside other processes, threads that spin take ten times as long.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # A server that a test starts must add up numbers in the same order as the test itself.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Tests compare what pages show with runs on the CPU, to the last digits, whatever GPU the shell offers. Those of a
    # GPU are named one by make test-gpu.
    os.environ["CUDA_VISIBLE_DEVICES"] = os.environ.get("TEST_GPU", "")
    with suppress(ModuleNotFoundError):
        from hypothesis import settings

        # No deadline: on a busy machine any example may take long.
        settings.register_profile("quick", max_examples=10, deadline=None)
        settings.register_profile("thorough", max_examples=30, deadline=None)
        settings.load_profile("thorough" if os.environ.get("CI") == "true" else "quick")


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module:
    return TestFile.from_parent(parent, path=module_path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Fixtures import what they need when a test asks for them."""
    try:
        yield
    except ModuleNotFoundError as error:
        skip_for_missing_package(error, item.nodeid)
        raise


@pytest.fixture(scope="session")
def saved_checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of checkpoints that holds the trained tiny model under the default checkpoint's name."""
    from model.checkpoints.store import DEFAULT_CHECKPOINT

    folder = tmp_path_factory.mktemp("checkpoints")
    (folder / DEFAULT_CHECKPOINT).mkdir()
    for name in ("config.json", "tokenizer.model", "model.safetensors"):
        shutil.copy(FIXTURE / name, folder / DEFAULT_CHECKPOINT)
    return folder


@pytest.fixture(scope="session")
def translator(saved_checkpoints: Path) -> "Translator":
    """The trained tiny model: 2 + 2 layers, 4 heads of 8 dimensions, 360 pieces. Shared, so do not change it."""
    from model.checkpoints.store import DEFAULT_CHECKPOINT, load_checkpoint

    return load_checkpoint(str(saved_checkpoints / DEFAULT_CHECKPOINT), "cpu")


@pytest.fixture(scope="session")
def tokenizer(translator: "Translator") -> "Tokenizer":
    return translator.tokenizer


@pytest.fixture(scope="session")
def tiny_config(translator: "Translator") -> "TransformerConfig":
    return translator.model.config


@pytest.fixture(scope="session")
def tiny_model(translator: "Translator") -> "Transformer":
    return translator.model


@pytest.fixture
def checkpoint_folder(saved_checkpoints: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`saved_checkpoints`, where the code looks for checkpoints during this test."""
    from model.checkpoints.store import CHECKPOINTS_VARIABLE

    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(saved_checkpoints))
    return saved_checkpoints


def pytest_collection_finish() -> None:
    """The garbage collector leaves alone what imports have created, and runs less often."""
    gc.freeze()
    gc.set_threshold(50_000)
