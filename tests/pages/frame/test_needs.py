"""A page that needs what the model lacks says so, and opens a checkpoint that has it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from model.checkpoints.store import CHECKPOINTS_VARIABLE
from model.checkpoints.translator import Translator
from pages import PAGES
from tests.pages.test_pages import said

pytest.importorskip("streamlit")

pytestmark = pytest.mark.usefixtures("fresh_caches")
NEEDY = [page for pages in PAGES.values() for page in pages if page.needs]


@pytest.fixture
def encoder_only(checkpoint_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A stand-in for another family: the default checkpoint, beside a whole one, has an encoder alone."""
    (folder,) = checkpoint_folder.iterdir()
    for name in (folder.name, "whole"):
        shutil.copytree(folder, tmp_path / name)
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(tmp_path))
    features = Translator.features.fget
    alone = frozenset({"an encoder"})
    monkeypatch.setattr(
        Translator, "features", property(lambda self: features(self) if self.name == "whole" else alone)
    )
    return folder.name


def test_our_models_have_what_every_page_needs(translator: Translator) -> None:
    assert translator.features == {"an encoder", "a decoder", "cross-attention"}
    assert NEEDY
    assert all(set(page.needs) <= translator.features for page in NEEDY)


@pytest.mark.parametrize("page", NEEDY, ids=lambda page: page.title)
def test_what_is_missing_is_said_and_a_button_opens_a_checkpoint_that_has_it(
    page: object, encoder_only: str, open_app: Callable
) -> None:
    app = open_app(page.path)
    assert not app.exception
    assert f"This page needs {page.needs[0]}, which the checkpoint {encoder_only} does not have." in said(app)
    assert not app.get("plotly_chart")
    app.button(key="open_suitable").click().run()
    assert not app.exception
    assert app.selectbox(key="checkpoint").value == "whole"
    assert "This page needs" not in said(app)
