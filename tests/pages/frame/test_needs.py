"""A page that needs what the model lacks says so, and opens a checkpoint that has it."""

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from model.checkpoints.store import (
    CHECKPOINTS_VARIABLE,
    available_checkpoints,
    load_checkpoint,
    stored_config,
)
from model.checkpoints.translator import Translator
from model.needs import EVERY_OWN, Need, features_of, parts_of
from model.network.config import TransformerConfig
from pages import PAGES, page_of
from pages.compute.runs import checkpoint_by_config, checkpoint_with
from tests.pages.figures import said
from tests.pages.test_pages import EVERY_PAGE

pytestmark = pytest.mark.usefixtures("fresh_caches")
OURS = {Need.ENCODER, Need.DECODER, Need.CROSS_ATTENTION, Need.ADDED_POSITIONS, *EVERY_OWN}
NEEDY = [
    page
    for page in EVERY_PAGE
    if page not in PAGES["Explore"] and OURS.issuperset(page.needs) and set(page.needs) - EVERY_OWN
]


@pytest.fixture
def encoder_only(checkpoint_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A stand-in for another family: the default checkpoint, beside a whole one, has an encoder alone."""
    (folder,) = checkpoint_folder.iterdir()
    for name in (folder.name, "whole"):
        shutil.copytree(folder, tmp_path / name)
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(tmp_path))
    features = Translator.features.func
    alone = frozenset({Need.ENCODER, *EVERY_OWN})
    monkeypatch.setattr(
        Translator, "features", property(lambda self: features(self) if self.name == "whole" else alone)
    )
    return folder.name


def test_the_translator_has_what_these_pages_need(translator: Translator) -> None:
    assert translator.features == OURS
    assert NEEDY


@pytest.mark.parametrize("page", NEEDY[:: max(len(NEEDY) - 1, 1)], ids=lambda page: page.title)
def test_what_is_missing_is_said_and_a_button_opens_a_checkpoint_that_has_it(
    page: object, encoder_only: str, open_app: Callable
) -> None:
    app = open_app(page.path)
    missing = " and ".join(need for need in page.needs if need not in EVERY_OWN)
    assert f"This page needs {missing}, which the checkpoint {encoder_only} does not have." in said(app)
    assert not app.get("plotly_chart")
    app.button(key="open_suitable").click().run()
    assert app.selectbox(key="checkpoint").value == "whole"
    assert "This page needs" not in said(app)


@pytest.mark.parametrize("name", ["translate", "fill_in"])
def test_who_comes_to_a_page_of_explore_from_another_page_gets_a_model_that_can_do_it(
    name: str, encoder_only: str, open_app: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, features = page_of(f"{name}.py"), Translator.features.fget
    needed = {True: frozenset(page.needs), False: frozenset()}
    monkeypatch.setattr(Translator, "features", property(lambda self: features(self) | needed[self.name == "whole"]))
    app = open_app("pages/masks.py")
    assert app.selectbox(key="checkpoint").value == encoder_only
    app.switch_page(page.path).run()
    assert "This page needs" not in said(app)
    assert app.selectbox(key="checkpoint").value == "whole"
    (notice,) = app.toast
    assert "whole" in notice.value
    assert encoder_only in notice.value


def test_the_model_that_a_page_of_explore_opens_can_be_named_before_it_is_opened() -> None:
    for page in PAGES["Explore"]:
        named = checkpoint_by_config(page.needs)
        assert named == checkpoint_with(page.needs, "cpu"), page.title
        assert named in available_checkpoints()


@pytest.mark.parametrize("name", available_checkpoints())
def test_what_a_model_has_is_known_before_it_is_opened(name: str) -> None:
    config = stored_config(name)
    assert features_of(config) == load_checkpoint(name, "cpu").features | parts_of(config)


def test_the_parts_of_a_configuration_are_those_that_it_names() -> None:
    plain = TransformerConfig(d_model=32, n_heads=4)
    newer = {
        Need.LEARNED_POSITIONS: {"positions": "learned"},
        Need.ROPE: {"positions": "rope"},
        Need.RMS_NORM: {"norm_function": "rms_norm"},
        Need.PRE_NORM: {"norm": "pre"},
        Need.SWIGLU: {"activation": "swiglu"},
        Need.SHARED_KEYS: {"n_kv_heads": 2},
    }
    assert parts_of(plain) == frozenset()
    assert {need: parts_of(replace(plain, **change)) for need, change in newer.items()} == {n: {n} for n in newer}


def test_every_part_and_every_tab_that_may_be_lacking_is_in_a_shipped_model() -> None:
    assert [need for need in Need if checkpoint_by_config([need]) is None] == [Need.ADDED_TYPES]
    for page in EVERY_PAGE:
        for view in page.views:
            needs = {*page.needs, *(need for need in view.needs if isinstance(need, Need))}
            assert checkpoint_by_config(needs), (page.title, view.title)


@pytest.fixture
def one_of_each(checkpoint_folder: Path, families: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The default translator; one with a snapshot; a language model."""
    (folder,) = checkpoint_folder.iterdir()
    for name in (folder.name, "saved"):
        shutil.copytree(folder, tmp_path / name)
    (tmp_path / "saved/snapshots").mkdir()
    shutil.copy(folder / "model.safetensors", tmp_path / "saved/snapshots/step-000100.safetensors")
    shutil.copytree(families / "lm", tmp_path / "lm")
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(tmp_path))
    return tmp_path


CLOSED = {
    ("efficient_attention", "Sinks"): "lm",
    ("training", "Which head moved most"): "saved",
    ("since_2017", "RoPE"): "lm",
}


@pytest.mark.usefixtures("one_of_each")
@pytest.mark.parametrize(("page", "tab"), CLOSED, ids=lambda part: part)
def test_a_closed_tab_opens_a_model_that_has_it_on_the_same_tab(page: str, tab: str, open_app: Callable) -> None:
    entry = page_of(f"{page}.py")
    app = open_app(entry.path, **{entry.tabs_key: tab})
    app.button(key="open-with").click().run()
    assert app.selectbox(key="checkpoint").value == CLOSED[page, tab]
    assert app.session_state[entry.tabs_key] == tab
    assert "open-with" not in {button.key for button in app.button}


@pytest.mark.usefixtures("one_of_each")
def test_a_tab_that_is_not_there_is_named_with_a_button_that_opens_it(open_app: Callable) -> None:
    app = open_app("pages/heads_and_layers.py", checkpoint="lm")
    (button,) = (one for one in app.button if (one.key or "").startswith("open-with-"))
    (tab,) = re.findall(r"The tab “(.+)” needs cross-attention", "\n".join(one.value for one in app.caption))
    button.click().run()
    assert app.session_state["heads_part"] == tab
    assert not any("needs cross-attention" in one.value for one in app.caption)
