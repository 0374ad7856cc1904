"""Pages run without a browser, on the tiny model."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from streamlit.testing.v1 import AppTest

    from model.checkpoints.translator import Translator
    from model.run import Run

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "checkpoints"
SOURCE, TEXT = "a dog and a cat", "Ein Hund mit einer Katze."
TYPED = {"source": SOURCE, "target": "Typed", "typed": TEXT}
"""how a link asks for the pair of sentences of `run_at`"""


@pytest.fixture(scope="session")
def server_runs() -> Iterator[None]:
    """What a server does once, each AppTest does in every run, which takes longer than the page: it scans every
    installed package for components, compiles the scripts, and takes the folder `pages` for a multipage app of the
    older kind. A server opens few models, after each of which it walks through all objects. And there is no browser
    whose headers a mock would be asked for, and for whose cache every message would be hashed."""
    from streamlit.components.v2 import manifest_scanner
    from streamlit.runtime.pages_manager import PagesManager
    from streamlit.runtime.scriptrunner import script_runner
    from streamlit.runtime.scriptrunner.script_cache import ScriptCache
    from streamlit.runtime.scriptrunner_utils import script_run_context
    from streamlit.testing.v1 import app_test, local_script_runner

    def run_main_script(path: str) -> None:
        PagesManager.uses_pages_directory = False
        exec(scripts.get_bytecode(path), {"__name__": "__main__", "__file__": path})

    scripts = ScriptCache()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", cache(manifest_scanner.scan_component_manifests))
        patch.setattr(script_runner, "_mpa_v1", run_main_script)
        for module in (app_test, local_script_runner):
            patch.setattr(module, "ScriptCache", lambda: scripts)
        patch.setattr("streamlit.runtime.context._get_client_context", lambda: None)
        patch.setattr(script_run_context, "populate_hash_if_needed", lambda _message: None)
        patch.setattr("pages.compute.runs.freeze_loaded_objects", lambda: None)
        yield


@pytest.fixture(autouse=True)
def raise_uncaught(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception for which visitors would have seen a traceback is raised where a test runs the page."""
    from streamlit.testing.v1 import AppTest

    found: list[BaseException] = []
    run = AppTest._run

    @wraps(run)
    def run_or_raise(app: AppTest, *args: Any, **more: Any) -> AppTest:
        found.clear()
        run(app, *args, **more)
        for error in found:
            error.add_note(f"The page has the address {dict(app.query_params)}.")
            raise error
        return app

    monkeypatch.setattr("streamlit.error_util._log_uncaught_app_exception", found.append)
    monkeypatch.setattr(AppTest, "_run", run_or_raise)


@pytest.fixture(autouse=True)
def open_boxes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every box and the checks at a foot are open, so that tests read what is in them: a closed one draws nothing."""
    import streamlit as st

    monkeypatch.setattr(st, "expander", partial(st.expander, expanded=True))
    draw = st.pills

    @wraps(draw)
    def draw_chosen(label: str, options: list, **more: Any) -> Any:
        if more["key"].startswith("foot-"):
            # In each run: work on a button adds an export.
            st.session_state[more["key"]] = list(options) if "open_feet" in request.fixturenames else ["checks"]
        return draw(label, options, **more)

    monkeypatch.setattr(st, "pills", draw_chosen)


@pytest.fixture
def short_texts() -> Iterator[None]:
    """Every text ends soon: a model with a mistake, a narrow pattern or another change seldom ends one."""
    from tests.model.strategies import short_texts

    with short_texts(12):
        yield


@pytest.fixture
def open_feet() -> None:
    """Every part of a foot is open, for the tests that read its code, its export or what it cites."""


@pytest.fixture
def valid_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plotly reads every figure that a page sends: a property or a value that it does not know is an error.

    For the tests that open every page, tab or family; elsewhere it takes longer than the page.
    """
    from viz.figure import StableFigure

    send = StableFigure.to_dict
    monkeypatch.setattr(StableFigure, "to_dict", lambda figure: (send(figure), figure.layout)[0])


@pytest.fixture
def fresh_caches() -> Iterator[None]:
    """Empty caches before and after a test that counts or replaces work, or that presses a button to start it."""
    import streamlit as st

    st.cache_resource.clear()
    yield
    st.cache_resource.clear()


@pytest.fixture(scope="session")
def measured_checkpoints(saved_checkpoints: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of `saved_checkpoints` with the scores of its heads."""
    from model.checkpoints.store import DEFAULT_CHECKPOINT
    from tests.conftest import FIXTURE

    folder = tmp_path_factory.mktemp("measured") / "checkpoints"
    shutil.copytree(saved_checkpoints, folder)
    for name in ("heads.json", "heads.npz"):
        shutil.copy(FIXTURE / name, folder / DEFAULT_CHECKPOINT)
    return folder


@pytest.fixture
def checkpoint_folder(measured_checkpoints: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`measured_checkpoints`, where the code looks for checkpoints during this test."""
    from model.checkpoints.store import CHECKPOINTS_VARIABLE

    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(measured_checkpoints))
    return measured_checkpoints


@pytest.fixture(scope="session")
def cached_folder() -> list[str | None]:
    """The folder of checkpoints that the caches were filled from: they know a checkpoint by its name alone."""
    return [None]


@pytest.fixture
def open_app(request: pytest.FixtureRequest, cached_folder: list[str | None]) -> Callable[..., "AppTest"]:
    """Opens the app on a page, as a link does, with a query in the URL; caches outlive the test."""
    import streamlit as st
    from streamlit.testing.v1 import AppTest

    from model.checkpoints.store import CHECKPOINTS_VARIABLE

    def open_app(page: str = "pages/translate.py", **query: str) -> AppTest:
        folder = os.environ[CHECKPOINTS_VARIABLE]
        if cached_folder != [folder]:
            st.cache_resource.clear()
            cached_folder[:] = [folder]
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        if page.endswith("what_if.py") and not query.pop("first", ""):
            query.setdefault("changes", "[]")  # not with the change that a first visit begins with
        for key, value in query.items():
            app.query_params[key] = value
        return (app if page == "pages/translate.py" else app.switch_page(page)).run()

    request.getfixturevalue("server_runs")
    request.getfixturevalue("checkpoint_folder")
    return open_app


@pytest.fixture
def open_shipped(open_app: Callable[..., "AppTest"], monkeypatch: pytest.MonkeyPatch) -> Callable[..., "AppTest"]:
    """`open_app` on the models that everybody gets."""
    from model.checkpoints.store import CHECKPOINTS_VARIABLE

    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(SHIPPED))
    return open_app


@pytest.fixture(scope="session")
def run_at(translator: "Translator") -> Callable[..., "Run"]:
    """The run of the tiny model on SOURCE and TEXT, at a place, with changes."""
    from model.run import Run

    @cache
    def traced(*changes: Any) -> Any:
        return translator.trace(SOURCE, TEXT, interventions=changes)

    def run_at(kind: str = "encoder_self", layer: int = 0, head: int = 0, *changes: Any) -> Run:
        return Run.of(translator, traced(*changes), kind, layer, head)

    return run_at


@pytest.fixture(scope="session")
def families(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a random language model, a masked one, and a translator that does not divide its scores."""
    from model.network.config import TransformerConfig
    from tests.model.checkpoints.test_language_model import MODERN

    folder = tmp_path_factory.mktemp("families")
    unscaled = TransformerConfig(d_model=32, n_heads=4, d_ff=16, max_len=48, scale_scores=False)
    for name, config, layers in (("lm", MODERN, (0, 2)), ("mlm", MODERN, (2, 0)), ("unscaled", unscaled, (1, 1))):
        save_random(folder / name, config, *layers)
    return folder


def save_random(folder: Path, config: Any, encoders: int, decoders: int) -> None:
    """A random model with so many layers, and a vocabulary of 312 pieces; an encoder alone has a mask token."""
    from model.checkpoints.store import save_checkpoint
    from model.checkpoints.tokenizer import train_tokenizer
    from tests.model.tiny import SENTENCES, random_model

    tokenizer = train_tokenizer([source for source, _ in SENTENCES], 312, masked=not decoders)
    model = random_model(replace(config, vocab_size=312, n_encoder_layers=encoders, n_decoder_layers=decoders))
    save_checkpoint(folder, model, tokenizer, dict(model.named_parameters()))


@pytest.fixture(scope="session")
def others(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Folders of models that `transformers` wrote: learned positions; a soft cap, windows and two norms a sub-layer."""
    from tests.model.checkpoints.huggingface.folders import save_family

    folder = tmp_path_factory.mktemp("others")
    return {name: str(save_family(folder / name, name)) for name in ("GPT-2", "Gemma 2")}


@pytest.fixture
def open_family(
    open_app: Callable[..., "AppTest"], families: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., "AppTest"]:
    """`open_app` on the checkpoints of `families`."""
    from model.checkpoints.store import CHECKPOINTS_VARIABLE

    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(families))
    return open_app


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of checkpoints that are named and written in markup, the translator with the scores of its heads."""
    from tests.conftest import FIXTURE
    from tests.injection import TRANSLATOR, save_checkpoints

    folder = save_checkpoints(tmp_path_factory.mktemp("hostile") / "checkpoints")
    for name in ("heads.json", "heads.npz"):
        shutil.copy(FIXTURE / name, folder / TRANSLATOR)
    return folder


@pytest.fixture
def open_hostile(
    open_app: Callable[..., "AppTest"], hostile: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., "AppTest"]:
    """`open_app` on the checkpoints of `hostile`."""
    from model.checkpoints.store import CHECKPOINTS_VARIABLE

    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(hostile))
    return open_app


@pytest.fixture(scope="session")
def family_run(families: Path, others: dict[str, str]) -> Callable[[str], "Run"]:
    """The run of a model of `families` or `others`, at head 2 of the last layer of its first kind of attention."""
    from model.checkpoints.store import load_checkpoint
    from model.needs import Need
    from model.run import Continuation, Place, Request, Run

    @cache
    def family_run(name: str) -> Run:
        opened = load_checkpoint(others.get(name, str(families / name)), "cpu")
        target = "Zwei Hunde." if Need.CROSS_ATTENTION in opened.features else None
        writes = Continuation(4) if Need.LANGUAGE_MODEL in opened.features else None
        kind = opened.kinds[0]
        request = Request("Two dogs run.", target, continuation=writes)
        return Run.start(opened, request, Place(kind.name, kind.layers[-1], 2))

    return family_run
