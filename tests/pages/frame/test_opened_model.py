"""Which model is open: the one that the app was started with, or that a link, the menu or an address asks for."""

import shutil
from collections.abc import Callable

import pytest

from model.checkpoints.store import CHECKPOINTS_VARIABLE, DEFAULT_CHECKPOINT, MODELS_VARIABLE, load_checkpoint
from pages import PAGES
from pages.compute.runs import checkpoint_by_config, checkpoint_with, open_translator
from pages.frame.address.here import lacking
from pages.frame.address.menu import HOME
from pages.frame.course.course import Course, Step, encode
from pages.lessons import lessons
from tests.model.checkpoints.huggingface.folders import save_family
from tests.pages.conftest import ROOT
from tests.pages.figures import said, warned

FORMS = {"BERT": "fill_in", "GPT-2": "continue_text", "BART": "translate"}
"""family -> the page of Explore that is its form"""
QUESTIONS = {page.name: page.question for page in PAGES["Explore"]}


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Folder by family; "headless" is a BERT that gives vectors alone."""
    folder = tmp_path_factory.mktemp("given")
    saved = {name: str(save_family(folder / f"my-{name}", name)) for name in FORMS}
    return saved | {"headless": str(save_family(folder / "headless", "BERT", head=False))}


@pytest.fixture
def start_with(given: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Callable:
    """Starts the app with the models of these families."""
    return lambda *names: monkeypatch.setenv(MODELS_VARIABLE, ",".join(given[name] for name in names))


@pytest.mark.parametrize("name", FORMS)
def test_explore_takes_the_form_of_the_model_that_the_app_was_started_with(name, given, start_with, open_app):
    start_with(name)
    for address in QUESTIONS:
        app = open_app(f"pages/{address}.py")
        assert app.title[0].value == f"{QUESTIONS[FORMS[name]]} :small[:gray[my-{name}]]"
        assert app.selectbox(key="checkpoint").value == given[name]
        asked_for_another = address not in (FORMS[name], "translate")
        assert ("which my-" in "".join(note.value for note in app.info).replace("\\", "")) == asked_for_another


def test_of_several_the_first_is_open_and_a_form_opens_the_first_that_has_it(given, start_with, open_app):
    start_with("headless", "BERT", "GPT-2")
    app = open_app("pages/masks.py")
    assert app.selectbox(key="checkpoint").value == given["headless"]
    assert list(app.selectbox(key="checkpoint").options[:3]) == ["headless", "my-BERT", "my-GPT-2"]
    for address, name in (("continue_text", "GPT-2"), ("fill_in", "BERT")):
        app.switch_page(f"pages/{address}.py").run()
        assert app.selectbox(key="checkpoint").value == given[name]
        assert app.title[0].value.startswith(QUESTIONS[address])
    app.selectbox(key="checkpoint").set_value(given["GPT-2"]).run()
    assert app.title[0].value.startswith(QUESTIONS["continue_text"]), "the form follows a choice in the sidebar"
    app.button(key="reset").click().run()
    assert app.session_state["checkpoint"] == given["headless"]


def test_without_such_a_model_an_address_of_explore_opens_a_checkpoint_that_has_its_form(open_family):
    for address, name in (("continue_text", "lm"), ("fill_in", "mlm"), ("translate", "unscaled")):
        app = open_family(f"pages/{address}.py")
        assert app.selectbox(key="checkpoint").value == name
        assert app.title[0].value.startswith(QUESTIONS[address])


COURSE = encode(Course("Week 1", (Step("continue_text", {"checkpoint": "lm"}, "Read.", ""),)))


@pytest.mark.parametrize(
    ("page", "link", "opens", "model"),
    [
        ("continue_text", {"checkpoint": "lm", "source": "A dog", "new_tokens": "3"}, "continue_text", "lm"),
        ("fill_in", {"checkpoint": "mlm", "source": "A <mask> runs."}, "fill_in", "mlm"),
        ("translate", {"checkpoint": "unscaled", "source": "A dog.", "see": "cross.0.1"}, "translate", "unscaled"),
        ("translate", {"checkpoint": "lm", "source": "A dog"}, "continue_text", "lm"),
        ("continue_text", {"checkpoint": "lm", "course": COURSE, "course_step": "1"}, "continue_text", "lm"),
        ("continue_text", {"checkpoint": "lm", "lang": "de", "source": "A dog"}, "continue_text", "lm"),
    ],
    ids=["shared text", "shared mask", "static page", "another form", "course", "German"],
)
def test_links_of_earlier_versions_open_their_model_and_keep_their_text(page, link, opens, model, open_family):
    app = open_family(f"pages/{page}.py", **link)
    assert app.selectbox(key="checkpoint").value == model
    assert app.session_state["visit"][0] == opens
    assert app.text_area(key="source").value == link.get("source", app.text_area(key="source").value)
    assert "This page needs" not in said(app)


def test_what_hides_a_word_is_written_as_the_model_reads_it_or_stays_and_the_page_says_which(
    given, start_with, open_app
):
    start_with("BERT", "GPT-2")
    app = open_app("pages/fill_in.py", source="A <mask> runs.")
    assert app.text_area(key="source").value == "A [MASK] runs."
    assert "my-BERT reads" in said(app)
    app.text_area(key="source").set_value("A dog runs.").run()
    assert "reads" not in said(app)
    app.text_area(key="source").set_value("A [MASK] runs.").run()
    app.selectbox(key="checkpoint").set_value(given["GPT-2"]).run()
    assert app.text_area(key="source").value == "A [MASK] runs."
    assert "The text stays as it is" in said(app)


@pytest.mark.usefixtures("checkpoint_folder")
def test_what_the_files_say_agrees_with_the_opened_models(given, start_with):
    start_with("headless", "BART", "BERT", "GPT-2")
    for page in PAGES["Explore"]:
        assert checkpoint_by_config(page.needs) == checkpoint_with(page.needs, "cpu") != given["headless"]


@pytest.mark.usefixtures("fresh_caches")
def test_files_that_were_written_over_are_offered_and_until_then_the_model_stays(
    given, open_app, tmp_path, monkeypatch
):
    folder = tmp_path / "mine"
    shutil.copytree(given["GPT-2"], folder)
    monkeypatch.setenv(MODELS_VARIABLE, str(folder))
    before = load_checkpoint(str(folder), "cpu").hash
    app = open_app("pages/masks.py")
    assert "have changed" not in warned(app)
    weights = folder / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    app.run()
    assert "The files of mine have changed" in warned(app)
    app.button(key="open-again").click().run()
    assert "have changed" not in warned(app)
    assert open_translator(str(folder), "cpu").hash == load_checkpoint(str(folder), "cpu").hash != before


def test_a_link_to_a_station_opens_the_model_that_the_station_is_about(start_with, open_app):
    start_with("GPT-2")
    lesson = next(one for one in lessons() if one.stations[0].checkpoint == DEFAULT_CHECKPOINT)
    app = open_app("pages/learn.py", lesson=lesson.slug, station=lesson.stations[0].slug)
    assert app.selectbox(key="checkpoint").value == DEFAULT_CHECKPOINT
    assert app.text_area(key="source").value == lesson.stations[0].source


@pytest.mark.usefixtures("checkpoint_folder")
def test_a_page_of_explore_is_grey_only_where_no_model_here_can_open_it(monkeypatch):
    forms = {"" if page is HOME else page.name for page in PAGES["Explore"]}
    features = load_checkpoint(DEFAULT_CHECKPOINT).features
    assert forms & lacking(features).keys() == {"continue_text", "fill_in"}
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(ROOT / "checkpoints"))
    for name in (DEFAULT_CHECKPOINT, "everyday-lm", "everyday-mlm"):
        assert not forms & lacking(load_checkpoint(name).features).keys()
    assert "decoding" in lacking(load_checkpoint("everyday-mlm").features)
