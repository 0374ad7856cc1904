"""Every page, with good input and bad; the order of the menu; and what there is to cite."""

import re
import shutil
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path

import pytest

from model.checkpoints.tokenizer import Tokenizer
from model.checkpoints.translator import Translator
from model.needs import Need
from model.network.config import TransformerConfig
from pages import PAGES, Page, next_page, page_of
from pages.widgets.cite import app_entry, paper_entry
from tests.pages.figures import holds, open_alone, said

OTHER_FAMILIES = (Need.LANGUAGE_MODEL, Need.MASKED_MODEL)
"""what no translator has; tests/pages/test_families.py opens the pages that need it"""
EVERY_PAGE = [page for pages in PAGES.values() for page in pages]
ALL_PAGES = [page.path for page in EVERY_PAGE if not set(page.needs) & set(OTHER_FAMILIES)]
WITHOUT_NUMBERS = ("pages/glossary.py",)
WITH_NUMBERS = [path for path in ALL_PAGES if path not in WITHOUT_NUMBERS]
"""that show something of the run, and can be exported"""
TWO_PAGES = ["pages/translate.py", "pages/masks.py"]
"""for what the frame around every page does, not the page"""
OF_THEIR_OWN = [f"pages/{name}.py" for name in ("learn", "training", "what_if", "efficient_attention", "side_by_side")]
"""pages whose file says more than where its views are"""
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
    tiny_config: TransformerConfig,
    tokenizer: Tokenizer,
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


def missing_at(page: Page, features: Collection[Need]) -> set[Need]:
    """What a model lacks of the page that this address opens: of Explore, and at the root, one that it can do."""
    root, *others = PAGES["Explore"]
    follows = page == root or (page in others and any({*one.needs} <= features for one in PAGES["Explore"]))
    return set() if follows else {*page.needs} - features


def assert_checked(app, missing: set[Need]) -> None:
    """The page is checked against the model, or says what the model lacks."""
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
        assert "Type at least one word" in said(app), name
    app.text_area(key="source").set_value("dog " * 25_000).run()
    assert "The source has 100,000 characters; one run of the model holds 128 tokens" in said(app)
    assert holds(app) == 3
    app.text_area(key="source").set_value("a dog").run()
    assert holds(app) == 3


@pytest.mark.parametrize("page", ALL_PAGES)
def test_a_page_falls_back_where_a_link_was_forged(page: str, open_app: Callable) -> None:
    """Every parameter with values of two classes, in turn; its neighbours have other classes."""
    plain = open_app(page)
    assert_falls_back(plain, "nothing", page_of(page).first_kind or "encoder_self")
    keys = sorted(names_in_links(plain) - {"source"})
    assert {"checkpoint", "target", "kind", "layer", "head", "tau", "scope"} <= set(keys)
    for run in range(ALL_PAGES.index(page) % 2, len(FORGED), 2):
        classes = [FORGED[(run + i) % len(FORGED)] for i in range(len(keys))]
        query = {key: values[i % len(values)] for i, (key, values) in enumerate(zip(keys, classes, strict=True))}
        assert_falls_back(open_app(page, **query), query, page_of(page).first_kind or "encoder_self")


def assert_falls_back(app, forged: object, kind: str = "encoder_self") -> None:
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
    assert "no checkpoint" in said(app)


@pytest.mark.usefixtures("two_checkpoints")
def test_a_layer_that_the_next_checkpoint_lacks_becomes_the_first(open_app: Callable) -> None:
    app = open_app(layer="1")
    app.selectbox(key="checkpoint").set_value("one-layer").run()
    assert app.session_state["layer"] == 0
    assert "layer" not in app.query_params
    assert "no layer 1 here" in said(app)
    assert holds(app) == 3


@pytest.mark.parametrize("page", [*TWO_PAGES, *OF_THEIR_OWN])
def test_a_page_runs_on_its_own(page: str, checkpoint_folder: Path) -> None:
    assert checkpoint_folder.is_dir()
    app = open_alone(Path(page).stem)
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


def way(features: set[Need]) -> list[Page]:
    """The pages that one comes to from the first one that the model has."""
    pages = [next(page for page in EVERY_PAGE if set(page.needs) <= features)]
    while following := next_page(pages[-1], features):
        pages.append(following)
    return pages


@pytest.mark.parametrize("lacks", [(), (Need.CROSS_ATTENTION,), (Need.LOGITS, Need.MATRICES)])
def test_page_by_page_one_comes_to_all_that_the_model_has_in_the_order_of_the_menu(
    lacks: tuple[Need, ...],
) -> None:
    features = set(Need) - set(lacks)
    assert way(features) == [page for page in EVERY_PAGE if set(page.needs) <= features]


def test_every_question_is_asked_once() -> None:
    assert len({page.heading for page in EVERY_PAGE}) == len(EVERY_PAGE)


@pytest.mark.parametrize("view", ["Masks: What is hidden", r"100 % & _x_ {y} \z ~ #1 $"])
def test_a_citation_is_one_balanced_entry_whatever_the_view_is_called(view: str, translator: Translator) -> None:
    trace = translator.trace("a dog")
    entry = app_entry(trace, view)
    plain = entry.replace("\\{", "").replace("\\}", "")
    assert entry.count("@") == 1
    assert plain.count("{") == plain.count("}")
    assert trace.checkpoint_hash in entry
    for special in "%&#$_":
        assert f"{special}" not in entry.replace(f"\\{special}", "").replace("attention_explorer", "")


@pytest.mark.parametrize("sections", [["3.2.3"], ["3", "6.1"]])
def test_the_paper_is_cited_with_the_sections_that_the_view_names(sections: list[str]) -> None:
    entry = paper_entry(sections)
    assert all(section in entry.split("note")[1] for section in sections)
    assert entry.count("{") == entry.count("}")
