"""The page on positional encoding without a browser: every tab at its extremes, and a learned table."""

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
LARGEST = {"positions": 128, "dimensions": 32, "from": 127, "pos": 63, "offset": 64, "pair": 15}


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
@pytest.mark.parametrize("tab", ["The encoding", "Wavelengths", "Distance", "Rotation"])
def test_every_slider_reaches_both_its_ends(tab: str) -> None:
    page = open_page(part=tab)
    for key in [slider.key for slider in page.main.slider]:
        assert page.slider(key=key).max == LARGEST[key]
        for value in (page.slider(key=key).max, page.slider(key=key).min):
            page.slider(key=key).set_value(int(value)).run()
            assert not page.exception


@pytest.mark.usefixtures("checkpoints")
def test_a_learned_table_gets_neither_wavelengths_nor_a_rotation() -> None:
    page = open_page(checkpoint="learned", part="The encoding")
    assert tabs(page) == ["Word order", "The encoding", "Your sentence", "Distance", "Learned, RoPE, ALiBi"]
    assert any("**learned**" in text.value for text in page.markdown)


@pytest.mark.usefixtures("checkpoints")
@pytest.mark.parametrize("tab", ["The encoding", "Learned, RoPE, ALiBi", "Distance", "Word order"])
def test_values_of_a_larger_checkpoint_come_into_range(tab: str) -> None:
    page = open_page(checkpoint="learned", part=tab, side="target", **LARGEST)
    sliders = {slider.key: slider.value for slider in page.main.slider}
    for key, value in {"positions": 60, "dimensions": 16}.items():
        assert sliders.get(key, value) == value
    assert set(sliders) >= {"positions", "dimensions"} or tab != "The encoding"


@pytest.mark.usefixtures("checkpoints")
@pytest.mark.parametrize("source", ["A", "A dog runs. " * 12])
def test_short_and_long_sentences_show_their_sum(source: str) -> None:
    page = open_page(part="Your sentence", source=source, target="greedy", side="target")
    assert len(page.get("plotly_chart")) == 1
    assert any("differs from the model's by at most 0." in caption.value for caption in page.caption)


@pytest.mark.usefixtures("checkpoints")
def test_a_rotation_is_written_out_for_the_position_and_the_offset_of_the_link() -> None:
    page = open_page(part="Rotation", pos=7, offset=9, pair=3)
    assert any("M_{9}" in formula.value and "16" in formula.value for formula in page.latex)


@pytest.mark.usefixtures("checkpoints")
def test_no_waves_chosen_is_no_error() -> None:
    page = open_page(part="Wavelengths")
    page.multiselect(key="waves").set_value([]).run()
    assert not page.exception
    page.multiselect(key="waves").set_value([0, 1, 31]).run()
    assert not page.exception
