"""The page on positional encoding without a browser: a learned table, and a rotation that a link opens."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from model.checkpoints.store import CHECKPOINTS_VARIABLE, save_checkpoint
from model.checkpoints.tokenizer import Tokenizer
from model.network.config import TransformerConfig
from tests.model.tiny import random_model

PAGE = str(Path(__file__).parents[2] / "pages" / "positional_encoding.py")


@pytest.fixture
def checkpoints(
    saved_checkpoints: Path,
    tmp_path: Path,
    tiny_config: TransformerConfig,
    tokenizer: Tokenizer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The tiny model and, beside it, one with fewer positions that learned their table."""
    folder = shutil.copytree(saved_checkpoints, tmp_path / "checkpoints")
    model = random_model(replace(tiny_config, positions="learned", max_len=60, d_model=16))
    save_checkpoint(folder / "learned", model, tokenizer, dict(model.named_parameters()))
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(folder))


def open_page(**state: object) -> AppTest:
    page = AppTest.from_file(PAGE, default_timeout=120)
    for key, value in state.items():
        page.session_state[key] = value
    page.run()
    assert not page.exception
    return page


def tabs(page: AppTest) -> list[str]:
    return [tab.label for tab in page.tabs]


@pytest.mark.usefixtures("checkpoints")
def test_a_learned_table_gets_neither_wavelengths_nor_a_rotation() -> None:
    page = open_page(checkpoint="learned", part="The encoding")
    assert tabs(page) == ["Word order", "The encoding", "Your sentence", "Distance", "Learned, RoPE, ALiBi"]
    assert any("**learned**" in text.value for text in page.markdown)


@pytest.mark.usefixtures("checkpoints")
def test_a_rotation_is_written_out_for_the_position_and_the_offset_of_the_link() -> None:
    page = open_page(part="Rotation", pos=7, offset=9, pair=3)
    assert any("M_{9}" in formula.value and "16" in formula.value for formula in page.latex)
