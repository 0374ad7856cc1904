"""Every page with a GPT-2 and a Llama that `save_pretrained` wrote: checked against the model, or what it needs."""

from collections.abc import Callable

import pytest

from model.checkpoints.store import MODELS_VARIABLE, load_checkpoint
from pages import PAGES
from pages.frame import command_line
from tests.model.checkpoints.huggingface.folders import save_family
from tests.pages.test_pages import holds, said

pytest.importorskip("streamlit")

EVERY_PAGE = [page for pages in PAGES.values() for page in pages]
SENTENCE = "Two dogs run through the snow. 🤖"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Folder by family."""
    folder = tmp_path_factory.mktemp("others")
    return {name: str(save_family(folder / name.split(",")[0], name)) for name in ("GPT-2", "Llama, grouped")}


@pytest.fixture
def open_model_page(open_app: Callable, models: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Callable:
    monkeypatch.setenv(MODELS_VARIABLE, ",".join(models.values()))
    return lambda page, name, **query: open_app(page, checkpoint=models[name], source=SENTENCE, **query)


@pytest.mark.parametrize("name", ["GPT-2", "Llama, grouped"])
@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: page.path)
def test_a_page_is_checked_against_the_model_or_says_what_it_needs(page, name, models, open_model_page):
    app = open_model_page(page.path, name)
    missing = set(page.needs) - load_checkpoint(models[name], "cpu").features
    assert not app.exception
    assert ("This page needs" in said(app)) == bool(missing)
    assert holds(app) == (0 if missing else 3)
    assert "\ufffd" not in said(app)


def test_a_link_opens_no_model_that_the_app_was_not_started_with(models, open_app, monkeypatch):
    for forged in (models["GPT-2"], "openai-community/gpt2", "../../etc"):
        monkeypatch.delenv(MODELS_VARIABLE, raising=False)
        app = open_app("pages/masks.py", checkpoint=forged)
        assert not app.exception
        assert forged not in app.selectbox(key="checkpoint").options
        assert app.selectbox(key="checkpoint").value != forged


def test_the_command_line_offers_models_first(models, open_app, monkeypatch):
    monkeypatch.setenv(MODELS_VARIABLE, "")
    command_line.offer_models(["--model", models["GPT-2"], "--model", models["Llama, grouped"]])
    options = open_app("pages/masks.py").selectbox(key="checkpoint").options
    assert list(options[:2]) == list(models.values())
    with pytest.raises(SystemExit):
        command_line.offer_models(["--modle", "gpt2"])
