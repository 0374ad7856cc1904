"""A translator of many languages: two choices, in the link, the run, the export and the program."""

from collections.abc import Callable
from pathlib import Path

import pytest

from model.checkpoints.store import MODELS_VARIABLE, load_checkpoint
from pages.compute.trace_file import link_to, open_trace_file
from tests.pages.test_pages import holds

pytest.importorskip("streamlit")
pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.model.checkpoints.huggingface.folders import save_many_languages

    return save_many_languages(tmp_path_factory.mktemp("many") / "m2m", "M2M100")


@pytest.fixture
def open_page(folder: Path, open_app: Callable, monkeypatch: pytest.MonkeyPatch) -> Callable:
    monkeypatch.setenv(MODELS_VARIABLE, str(folder))
    return lambda page, **query: open_app(page, **{"checkpoint": str(folder), "source": "A dog runs."} | query)


def test_languages_are_chosen_in_the_sidebar_and_are_those_of_the_link(open_page: Callable, folder: Path) -> None:
    opened = load_checkpoint(str(folder))
    typed = {"target": "Typed", "typed": "Ein Hund."}
    app = open_page("pages/masks.py", source_language="fr", target_language="tlh", **typed)
    assert not app.exception
    assert holds(app) == 3
    chosen = [app.selectbox(key=key) for key in ("source_language", "target_language")]
    assert [each.value for each in chosen] == ["fr", opened.chosen_languages[1]]
    assert set(chosen[0].options) == set(opened.languages)
    assert any("does not exist" in note.value for note in app.info)


def test_a_file_of_a_trace_brings_its_languages(folder: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv(MODELS_VARIABLE, str(folder))
    opened = load_checkpoint(str(folder))
    opened.trace("A dog runs.", "Ein Hund.", source_language="fr", target_language="de").save(tmp_path / "run.npz")
    link = link_to(open_trace_file(str(tmp_path / "run.npz")))
    assert (link["source_language"], link["target_language"]) == ("fr", "de")
