"""A broken checkpoint on every page: a sentence, and the app goes on with the others.

tests/model/checkpoints has what can be wrong with a folder, and what is said of it.
"""

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.store import (
    CHECKPOINTS_VARIABLE,
    DEFAULT_CHECKPOINT,
    MODELS_VARIABLE,
    CheckpointError,
    load_checkpoint,
    offer_models,
)
from pages import page_of
from tests.model.checkpoints.huggingface.folders import change_json, save_family
from tests.model.checkpoints.huggingface.test_folders import save_other_head
from tests.pages.figures import holds, said
from tests.pages.test_pages import ALL_PAGES, EVERY_PAGE, TWO_PAGES, assert_checked, missing_at


@pytest.fixture
def broken(checkpoint_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a checkpoint that is to be damaged, beside a good one."""
    for name in (DEFAULT_CHECKPOINT, "broken"):
        shutil.copytree(checkpoint_folder / DEFAULT_CHECKPOINT, tmp_path / name)
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(tmp_path))
    return tmp_path / "broken"


@pytest.mark.usefixtures("fresh_caches")
@pytest.mark.parametrize(
    ("file", "content", "sentence", "pages"),
    [
        ("config.json", b"{", "is not a checkpoint's", ALL_PAGES),
        ("model.safetensors", b"short", "truncated or altered", TWO_PAGES),
    ],
)
def test_a_page_says_what_is_wrong_and_the_good_checkpoint_still_works(
    file: str, content: bytes, sentence: str, pages: list[str], broken: Path, open_app: Callable
) -> None:
    (broken / file).write_bytes(content)
    app = open_app(checkpoint="broken")
    for page in pages:
        app.switch_page(page).run()
        assert sentence in said(app), page
    app.selectbox(key="checkpoint").set_value(DEFAULT_CHECKPOINT).run()
    assert holds(app) == 3


@pytest.mark.parametrize("page", ["pages/training.py", "pages/model_card.py"])
@pytest.mark.parametrize(
    ("name", "content"), [("metrics.json", b"[]"), ("log.csv", b"step,dev_loss\ninf,1\n"), ("README.md", b"\xff\xfe")]
)
@pytest.mark.usefixtures("fresh_caches")
def test_with_a_broken_log_score_or_readme_the_page_stands(
    page: str, name: str, content: bytes, broken: Path, open_app: Callable
) -> None:
    (broken / name).write_bytes(content)
    assert holds(open_app(page, checkpoint="broken", card="Data, terms, limits")) == 3


def without(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


def holding(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


DAMAGED: dict[str, tuple[Callable[[Path], object], str]] = {
    "fp8": (
        lambda folder: change_json(folder / "config.json", quantization_config={"quant_method": "fp8"}),
        "Open the original weights",
    ),
    "no heads": (lambda folder: change_json(folder / "config.json", n_head=0), "config.json describes no model"),
    "no weights": (without("model.safetensors"), "has no model.safetensors"),
    "no configuration": (without("config.json"), "has no config.json"),
    "no JSON": (holding("config.json", b"\xff{"), "JSON file"),
    "a list": (holding("config.json", b"[]"), "holds no JSON object"),
    "tokenizer": (holding("tokenizer.json", b'{"model": 3}'), "its tokenizer cannot be read"),
}


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Folders of others: one that is whole, and each damage."""
    root = tmp_path_factory.mktemp("damaged, all of them")
    whole = save_family(root / "whole", "GPT-2")
    for name, (damage, _) in DAMAGED.items():
        damage(shutil.copytree(whole, root / name))
    return {name: str(root / name) for name in ("whole", *DAMAGED)}


@pytest.mark.parametrize("name", DAMAGED)
def test_each_damage_has_a_sentence(name: str, damaged: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MODELS_VARIABLE, "")
    offer_models([damaged[name]])
    with pytest.raises(CheckpointError, match=DAMAGED[name][1]):
        load_checkpoint(damaged[name], "cpu")


@pytest.mark.parametrize(("name", "link"), [("no configuration", False), ("tokenizer", True)])
def test_a_broken_model_of_others_gets_a_sentence_and_another_one_opens(
    name: str, link: bool, damaged: dict[str, str], open_app: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MODELS_VARIABLE, "")
    offer_models([damaged[name], damaged["whole"]])
    app = open_app("pages/masks.py", **({"checkpoint": damaged[name]} if link else {}))
    assert DAMAGED[name][1] in said(app)
    assert str(Path(damaged[name]).parent) not in said(app), "what lies where on the server is nobody's business"
    assert app.selectbox(key="checkpoint").options[:2] == [name, "whole"]
    assert {button.key for button in app.button} >= {"bar-share"}, "all of the frame"
    for good in (damaged["whole"], DEFAULT_CHECKPOINT):
        app.selectbox(key="checkpoint").set_value(good).run()
        assert holds(app) == 3


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Models without a tokenizer, or without a head that gives probabilities."""
    root = tmp_path_factory.mktemp("odd")
    for name in ("BERT", "GPT-2"):
        without("tokenizer.json")(save_family(root / name, name))
    for name in ("BartForSequenceClassification", "LlamaForSequenceClassification"):
        save_other_head(root / name, name)
    return {folder.name: str(folder) for folder in root.iterdir()}


@cache
def opened(folder: str) -> Checkpoint:
    return load_checkpoint(folder, "cpu")


@pytest.mark.parametrize(
    ("page", "name"),
    [
        *((page.name, "BERT") for page in EVERY_PAGE[::3]),
        *((page, "GPT-2") for page in ("continue_text", "decoding", "what_if", "tokens_and_embeddings")),
        *((page, "BartForSequenceClassification") for page in ("translate", "decoding", "what_if")),
        *((page, "LlamaForSequenceClassification") for page in ("continue_text", "masks", "gradients")),
    ],
)
def test_token_ids_are_read_where_there_is_no_tokenizer(
    page: str, name: str, odd: dict[str, str], open_app: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MODELS_VARIABLE, ",".join(odd.values()))
    app = open_app(f"pages/{page}.py", checkpoint=odd[name], source="5 17 42 9 30 11 8")
    assert_checked(app, missing_at(page_of(f"{page}.py"), opened(odd[name]).features))


def test_what_a_folder_holds_besides_is_said_in_the_sidebar(
    odd: dict[str, str], open_app: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MODELS_VARIABLE, ",".join(odd.values()))
    app = open_app("pages/masks.py", checkpoint=odd["LlamaForSequenceClassification"], source="5 17 42")
    captions = " ".join(caption.value for caption in app.sidebar.caption).replace("\\", "")
    assert "its head is not read" in captions
    assert "score.weight" in captions
