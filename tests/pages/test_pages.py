"""Every page, with good input and bad."""

import re
import shutil
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from model.needs import Need
from pages import PAGES, Page, page_of
from tests.pages.conftest import ROOT

if TYPE_CHECKING:
    from model.checkpoints.tokenizer import Tokenizer
    from model.network.config import TransformerConfig

pytest.importorskip("streamlit")

OTHER_FAMILIES = (Need.LANGUAGE_MODEL, Need.MASKED_MODEL)
"""what no translator has; tests/pages/test_families.py opens the pages that need it"""
ALL_PAGES = [page.path for pages in PAGES.values() for page in pages if not set(page.needs) & set(OTHER_FAMILIES)]
WITHOUT_NUMBERS = ("pages/glossary.py",)
WITH_NUMBERS = [path for path in ALL_PAGES if path not in WITHOUT_NUMBERS]
"""that show something of the run, and can be exported"""
TWO_PAGES = ["pages/translate.py", "pages/masks.py"]
"""for what the frame around every page does, not the page"""
BLANK = {"empty": "", "spaces": " \t\n\u00a0 "}
FORGED = (
    ("99", "-1", "9" * 5000),
    ("1.55", "nan", "inf", "1e999"),
    ("None", "0;1", "../../etc/passwd"),
    ("<b>x</b>", "\u202e"),
)
"""values by class: integers out of range, other numbers, words, markup"""


@pytest.fixture
def two_checkpoints(
    checkpoint_folder: Path,
    tiny_config: "TransformerConfig",
    tokenizer: "Tokenizer",
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The tiny checkpoint, with two layers, and beside it one with a single layer."""
    from model.checkpoints.store import save_checkpoint
    from tests.model.tiny import random_model

    shutil.copytree(checkpoint_folder, tmp_path, dirs_exist_ok=True)
    small = random_model(replace(tiny_config, n_encoder_layers=1, n_decoder_layers=1))
    save_checkpoint(tmp_path / "one-layer", small, tokenizer, dict(small.named_parameters()))
    monkeypatch.setenv("ATTENTION_EXPLORER_CHECKPOINTS", str(tmp_path))


def said(app) -> str:
    """All plain text and notes on the page."""
    return " ".join(element.value for kind in (app.text, app.info) for element in kind)


def holds(app) -> int:
    """How many checks of the proof strip passed."""
    return sum("✓ holds" in element.value for element in app.markdown)


def missing_at(page: Page, features: Collection[Need]) -> set[Need]:
    """What a model lacks of the page that this address opens: of Explore, and at the root, one that it can do."""
    root, *others = PAGES["Explore"]
    follows = page == root or (page in others and any({*one.needs} <= features for one in PAGES["Explore"]))
    return set() if follows else {*page.needs} - features


def assert_checked(app, missing: set[Need]) -> None:
    """The page is checked against the model, or says what the model lacks."""
    assert not app.exception
    assert ("This page needs" in said(app)) == bool(missing)
    assert all(need in said(app) for need in missing)
    assert holds(app) == (0 if missing else 3)
    assert "\ufffd" not in said(app)
    assert not any("fail" in text.value for text in app.markdown)


@pytest.mark.parametrize("page", TWO_PAGES)
def test_a_page_says_that_blank_text_is_nothing_and_long_text_is_cut_and_recovers(
    page: str, open_app: Callable
) -> None:
    app = open_app(page)
    for name, text in BLANK.items():
        app.text_area(key="source").set_value(text).run()
        assert not app.exception, name
        assert "Type at least one word" in said(app), name
    app.text_area(key="source").set_value("dog " * 25_000).run()
    assert not app.exception
    assert "The source has 100,000 characters; one run of the model holds 128 tokens" in said(app)
    assert holds(app) == 3
    app.text_area(key="source").set_value("a dog").run()
    assert holds(app) == 3


@pytest.mark.parametrize("page", ALL_PAGES)
def test_a_page_falls_back_where_a_link_was_forged(page: str, open_app: Callable) -> None:
    """Every parameter with a value of each class; its neighbours have other classes."""
    plain = open_app(page)
    assert_falls_back(plain, "nothing", page_of(page).first_kind or "encoder_self")
    keys = sorted(names_in_links(plain) - {"source"})
    assert {"checkpoint", "target", "kind", "layer", "head", "tau", "scope"} <= set(keys)
    for run in range(len(FORGED)):
        classes = [FORGED[(run + i) % len(FORGED)] for i in range(len(keys))]
        query = {key: values[i % len(values)] for i, (key, values) in enumerate(zip(keys, classes, strict=True))}
        assert_falls_back(open_app(page, **query), query, page_of(page).first_kind or "encoder_self")


@pytest.mark.parametrize("value", [value for values in FORGED for value in values])
def test_one_forged_value_everywhere(value: str, open_app: Callable) -> None:
    keys = names_in_links(open_app()) - {"source"}
    assert_falls_back(open_app(**dict.fromkeys(keys, value)), value)


def assert_falls_back(app, forged: object, kind: str = "encoder_self") -> None:
    assert not app.exception, forged
    assert app.segmented_control(key="kind").value == kind
    assert app.select_slider(key="layer").value == 0
    assert app.select_slider(key="tau").value == 1
    assert holds(app) == 3, forged


def names_in_links(app) -> set[str]:
    """Of everything on the page that a link can set; some pages read a few of them by themselves."""
    bound = {getattr(getattr(node, "proto", None), "query_param_key", "") for node in app._tree}
    return (
        bound
        | {"whole_at", "whole_off"}
        | {"see", "add", "decoding-step", "layers_token", "changes", "prefix", "force_at", "kept", "step", "cell"}
    ) - {""}


def test_a_forged_link_is_answered_with_a_note(open_app: Callable) -> None:
    app = open_app(layer="7", position="1000")
    assert "does not exist here (layer); 0 is shown" in said(app)
    assert "asks for a number that “Position, 0 to " in said(app)


@pytest.mark.parametrize("page", TWO_PAGES)
def test_a_page_says_which_checkpoint_is_missing(
    page: str, open_app: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTENTION_EXPLORER_CHECKPOINTS", str(tmp_path))
    app = open_app(page)
    assert not app.exception
    assert "no checkpoint" in said(app)


def test_a_checkpoint_that_is_cut_off_gets_a_sentence(
    open_app: Callable, checkpoint_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    for file in next(checkpoint_folder.iterdir()).iterdir():
        content = file.read_bytes()
        (broken / file.name).write_bytes(content[: len(content) // 2] if file.suffix == ".safetensors" else content)
    monkeypatch.setenv("ATTENTION_EXPLORER_CHECKPOINTS", str(tmp_path))
    app = open_app()
    assert not app.exception
    assert "truncated or altered" in said(app)


@pytest.mark.usefixtures("two_checkpoints")
def test_a_layer_that_the_next_checkpoint_lacks_becomes_the_first(open_app: Callable) -> None:
    app = open_app(layer="1")
    app.selectbox(key="checkpoint").set_value("one-layer").run()
    assert not app.exception
    assert app.session_state["layer"] == 0
    assert "layer" not in app.query_params
    assert "no layer 1 here" in said(app)
    assert holds(app) == 3


@pytest.mark.parametrize("page", ALL_PAGES)
def test_a_page_runs_on_its_own(page: str, checkpoint_folder: Path) -> None:
    from streamlit.testing.v1 import AppTest

    assert checkpoint_folder.is_dir()
    app = AppTest.from_file(str(ROOT / page), default_timeout=60).run()
    assert not app.exception
    assert [element.value for element in app.title] == [page_of(page).heading]
    assert holds(app) == 3


def test_an_example_a_typed_target_and_reset(open_app: Callable) -> None:
    app = open_app()
    app.selectbox(key="example").set_value("Can you help me find my keys?").run()
    assert app.text_area(key="source").value == "Can you help me find my keys?"
    app.segmented_control(key="target").set_value("typed").run()
    app.text_area(key="typed").set_value("Drei Hunde.").run()
    assert any("Drei Hunde." in re.sub("<[^>]*>", "", element.proto.body) for element in app.get("html"))
    app.text_area(key="typed").set_value("").run()
    assert "The target is empty" in said(app)
    next(button for button in app.button if button.label == "Reset").click().run()
    assert app.text_area(key="source").value == "The animal didn't cross the street because it was too tired."
    assert app.segmented_control(key="target").value == "beam"
    assert holds(app) == 3


def test_a_reset_can_be_taken_back_until_another_sentence_is_typed(open_app: Callable) -> None:
    app = open_app(source="a dog and a cat", layer="1", tau="2")
    backs = lambda: [button for button in app.button if button.label == "Back to my sentence"]  # noqa: E731
    assert not backs()
    app.button(key="reset").click().run()
    assert (app.select_slider(key="layer").value, app.select_slider(key="tau").value) == (0, 1)
    backs()[0].click().run()
    assert not app.exception
    assert app.text_area(key="source").value == "a dog and a cat"
    assert (app.select_slider(key="layer").value, app.select_slider(key="tau").value) == (1, 2)
    app.button(key="reset").click().run()
    app.text_area(key="source").set_value("a cat").run()
    assert not backs()


@pytest.mark.usefixtures("fresh_caches")
def test_a_check_that_fails_is_said_in_words(open_app: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    from model.proof.checks import Check
    from pages.compute import runs

    monkeypatch.setattr(runs, "prove", lambda *_: (Check("Claim", "Why.", error=2.0, tolerance=1.0),))
    app = open_app()
    assert any("✗ fails" in element.value for element in app.markdown)
    assert holds(app) == 0
    (foot,) = (group.proto for group in app.main.button_group if str(group.key).startswith("foot-"))
    assert (foot.options[0].content, foot.options[0].content_icon) == ("0 of 1 checks hold", ":material/error:")
