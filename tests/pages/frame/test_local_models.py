"""With --local, the person at this machine opens models that are on it, and nobody else does."""

import shutil
from pathlib import Path

import pytest

from model.checkpoints.huggingface.cache import CachedModel
from model.checkpoints.store import BROUGHT_VARIABLE, MODELS_VARIABLE
from pages.frame.server import command_line
from pages.frame.server.command_line import LOCAL_VARIABLE, comes_straight_from_here, read_arguments
from tests.model.checkpoints.huggingface.folders import save_family

FAMILIES = ("BERT", "GPT-2", "BART")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Hugging Face cache: a model of each family, one without a head, one quantised."""
    root = tmp_path_factory.mktemp("hub")
    for name in (*FAMILIES, "headless", "quantised"):
        repository = root / f"models--someone--{name}"
        folder = repository / "snapshots" / "abc"
        save_family(folder, name if name in FAMILIES else "BERT", head=name != "headless")
        (repository / "refs").mkdir()
        (repository / "refs" / "main").write_text("abc")
    config = root / "models--someone--quantised" / "snapshots" / "abc" / "config.json"
    config.write_text(config.read_text().replace("{", '{"quantization_config": {"quant_method": "gptq"},', 1))
    return root


@pytest.fixture
def at_this_machine(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The app was started with --local, and the request comes from here."""
    for variable in (BROUGHT_VARIABLE, MODELS_VARIABLE):
        monkeypatch.setenv(variable, "")
    monkeypatch.setenv(LOCAL_VARIABLE, "1")
    monkeypatch.setattr(command_line, "comes_straight_from_here", lambda _headers: True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    return cache


@pytest.mark.parametrize("host", ["localhost", "localhost:8501", "127.0.0.1:80", "[::1]:8501"])
def test_a_request_comes_from_this_machine_where_its_host_is_and_no_proxy_says_otherwise(host):
    assert comes_straight_from_here({"Host": host})
    for name in ("X-Forwarded-For", "x-forwarded-host", "Forwarded", "Via", "X-Real-IP", "CF-Connecting-IP"):
        assert not comes_straight_from_here({"Host": host, name: "127.0.0.1"}), name


@pytest.mark.parametrize("host", ["", "example.org", "localhost.example.org", "192.168.1.7:8501", "0.0.0.0:8501"])
def test_any_other_host_is_another_machine(host):
    assert not comes_straight_from_here({"Host": host})


@pytest.mark.parametrize("address", ["0.0.0.0", "", None, "192.168.1.7", "example.org"])
def test_an_app_that_listens_to_other_machines_does_not_start_with_local(address, monkeypatch):
    monkeypatch.setenv(LOCAL_VARIABLE, "")
    monkeypatch.setattr("streamlit.config.get_option", lambda _name: address)
    with pytest.raises(SystemExit, match="--local: the app listens to other machines"):
        read_arguments(["--local"])


def test_a_container_does_not_start_with_local():
    root = Path(__file__).parents[3]
    for path in (root / "Dockerfile", *(root / "deploy").glob("*.yaml")):
        assert "--local" not in path.read_text(), path
    assert "--local" in (root / "Makefile").read_text()


def offered(app) -> dict[str, str]:
    """Label by name, of the models of this machine."""
    buttons = [button for button in app.button if str(button.key).startswith("local-")]
    return {button.key.removeprefix("local-"): button.label for button in buttons}


@pytest.mark.usefixtures("at_this_machine", "fresh_caches")
def test_the_cache_lists_what_can_be_opened_with_what_can_be_read_of_it(open_app):
    app = open_app("pages/masks.py")
    assert list(offered(app)) == ["someone/BART", "someone/BERT", "someone/GPT-2", "someone/headless"]
    assert "GPT2LMHeadModel" in offered(app)["someone/GPT-2"]
    assert "MB · continues a text" in offered(app)["someone/GPT-2"]
    assert "without probabilities" in offered(app)["someone/headless"]
    app.button(key="local-someone/GPT-2").click().run()
    assert app.selectbox(key="checkpoint").value == "someone/GPT-2"
    assert "someone/GPT" in app.title[0].value


@pytest.mark.usefixtures("at_this_machine", "fresh_caches")
def test_more_than_eight_get_a_field_to_find_one(open_app, monkeypatch):
    nine = [CachedModel(f"someone/model-{number}", "GPT2LMHeadModel", "decoder", 10**6) for number in range(9)]
    monkeypatch.setattr("pages.frame.sidebar.local_models.models_on_this_machine", lambda: nine[:8])
    assert not [field for field in open_app("pages/masks.py").text_input if field.key == "local-find"]
    monkeypatch.setattr("pages.frame.sidebar.local_models.models_on_this_machine", lambda: nine)
    app = open_app("pages/masks.py")
    assert len(offered(app)) == 9
    app.text_input(key="local-find").set_value("MODEL-7").run()
    assert list(offered(app)) == ["someone/model-7"]


@pytest.mark.usefixtures("fresh_caches")
def test_a_path_is_taken_from_the_field_and_from_no_link(at_this_machine, open_app, tmp_path):
    folder = tmp_path / "my, model"
    shutil.copytree(at_this_machine / "models--someone--GPT-2" / "snapshots" / "abc", folder)
    linked = open_app("pages/masks.py", checkpoint=str(folder), **{"local-path": str(folder)})
    assert linked.selectbox(key="checkpoint").value == "en-de"
    app = open_app("pages/masks.py")
    app.text_input(key="local-path").set_value(f"{folder}-nothing").run()
    assert "there is no such folder" in " ".join(warning.value for warning in app.warning).replace("\\", "")
    assert app.selectbox(key="checkpoint").value == "en-de"
    app.text_input(key="local-path").set_value(str(folder)).run()
    assert app.selectbox(key="checkpoint").value == str(folder)
    assert not app.warning


@pytest.mark.usefixtures("at_this_machine")
def test_whoever_comes_from_elsewhere_sees_neither_the_box_nor_what_was_opened(open_app, monkeypatch):
    monkeypatch.setenv(BROUGHT_VARIABLE, "someone/GPT-2")
    monkeypatch.setattr(command_line, "comes_straight_from_here", lambda _headers: False)
    app = open_app("pages/masks.py", checkpoint="someone/GPT-2")
    assert not offered(app)
    assert not [field for field in app.text_input if field.key == "local-path"]
    assert app.selectbox(key="checkpoint").options == ["en-de"]
