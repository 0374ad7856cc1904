"""A page that needs what the model lacks says so, and opens a checkpoint that has it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from model.checkpoints.checkpoint import EVERY_OWN
from model.checkpoints.store import CHECKPOINTS_VARIABLE, available_checkpoints
from model.checkpoints.translator import Translator
from model.needs import Need
from pages import PAGES, page_of
from pages.compute.runs import checkpoint_by_config, checkpoint_with
from tests.pages.test_pages import said

pytest.importorskip("streamlit")

pytestmark = pytest.mark.usefixtures("fresh_caches")
OURS = {Need.ENCODER, Need.DECODER, Need.CROSS_ATTENTION, Need.ADDED_POSITIONS, *EVERY_OWN}
NEEDY = [
    page
    for section in PAGES
    for page in PAGES[section]
    if section != "Explore" and OURS.issuperset(page.needs) and set(page.needs) - EVERY_OWN
]


@pytest.fixture
def encoder_only(checkpoint_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A stand-in for another family: the default checkpoint, beside a whole one, has an encoder alone."""
    (folder,) = checkpoint_folder.iterdir()
    for name in (folder.name, "whole"):
        shutil.copytree(folder, tmp_path / name)
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(tmp_path))
    features = Translator.features.fget
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
    assert not app.exception
    missing = " and ".join(need for need in page.needs if need not in EVERY_OWN)
    assert f"This page needs {missing}, which the checkpoint {encoder_only} does not have." in said(app)
    assert not app.get("plotly_chart")
    app.button(key="open_suitable").click().run()
    assert not app.exception
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


@pytest.mark.parametrize("page", PAGES["Explore"], ids=lambda page: page.name)
def test_the_model_that_a_page_of_explore_opens_can_be_named_before_it_is_opened(page: object) -> None:
    named = checkpoint_by_config(page.needs)
    assert named == checkpoint_with(page.needs, "cpu")
    assert named in available_checkpoints()
