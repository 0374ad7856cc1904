"""A network that is not the one its folder describes says so in red on every page, and no tick stands beside it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from model.checkpoints.store import MODELS_VARIABLE
from tests.model.checkpoints.huggingface.families import tiny_model
from tests.model.checkpoints.huggingface.test_departures import DISTANCES, save
from tests.pages.test_pages import holds

pytest.importorskip("streamlit")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A BERT that was trained with relative positions, which transformers no longer has."""
    path = tmp_path_factory.mktemp("relative")
    return str(save(path, tiny_model("BERT"), {"position_embedding_type": "relative_key_query"}, DISTANCES))


@pytest.mark.parametrize("page", ["heads_and_layers", "verification", "model_card", "continue_text"])
def test_every_page_says_what_of_its_folder_the_network_does_not_use(
    page: str, folder: str, open_app: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MODELS_VARIABLE, folder)
    app = open_app(f"pages/{page}.py", checkpoint=folder, source="5 17 42")
    assert not app.exception
    line = "".join(each.value for each in app.error).replace("\\", "")
    assert "position_embedding_type: relative_key_query" in line
    assert "distance_embedding.weight in 3 layers" in line
    assert line.count("which this network does not use") == 1
    assert holds(app) == 0
    tables = [str(each.value.to_dict()) for each in app.dataframe]
    assert not any("✓" in text for text in [*(each.value for each in app.markdown), *tables])


def test_a_network_that_is_the_folders_has_no_red_line(
    tmp_path: Path, open_app: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(save(tmp_path, tiny_model("BERT")))
    monkeypatch.setenv(MODELS_VARIABLE, path)
    app = open_app("pages/heads_and_layers.py", checkpoint=path, source="5 17 42")
    assert not app.error
    assert holds(app) == 3
