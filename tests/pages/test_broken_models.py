"""A folder that cannot be opened: one sentence, a whole sidebar, and every other checkpoint still opens."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from model.checkpoints.store import DEFAULT_CHECKPOINT, MODELS_VARIABLE, offer_models
from pages import PAGES, page_of
from tests.model.checkpoints.huggingface.folders import save_family
from tests.model.checkpoints.huggingface.test_folders import save_other_head
from tests.pages.test_pages import assert_checked, holds, missing_at, said

pytest.importorskip("streamlit")

EVERY_PAGE = [page for pages in PAGES.values() for page in pages]


def _setting(name: str, value: object, file: str = "config.json") -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        found = json.loads((folder / file).read_text(encoding="utf-8"))
        (folder / file).write_text(json.dumps(found | {name: value}), encoding="utf-8")

    return change


def _spoil(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    next(iter(weights.values())).view(-1)[0] = torch.nan
    save_file(weights, folder / "model.safetensors")


def _truncate(folder: Path) -> None:
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[:5000])


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "gptq": (_setting("quantization_config", {"quant_method": "gptq"}), "is quantised"),
    "fp8": (_setting("quantization_config", {"quant_method": "fp8"}), "Open the original weights"),
    "no heads": (_setting("n_head", 0), "config.json describes no model"),
    "unknown family": (_setting("model_type", "made-up"), "config.json cannot be used"),
    "another layer": (_setting("n_layer", 4), "the weights lack"),
    "NaN": (_spoil, "not finite numbers"),
    "cut off": (_truncate, "is not a valid safetensors file"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "has no model.safetensors"),
    "no configuration": (lambda folder: (folder / "config.json").unlink(), "has no config.json"),
    "no JSON": (lambda folder: (folder / "config.json").write_bytes(b"\xff{"), "JSON file"),
    "a list": (lambda folder: (folder / "config.json").write_text("[]"), "holds no JSON object"),
    "tokenizer": (
        lambda folder: (folder / "tokenizer.json").write_text('{"model": 3}'),
        "its tokenizer cannot be read",
    ),
    "nothing": (shutil.rmtree, "there is no such folder"),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_family(tmp_path_factory.mktemp("whole") / "whole", "GPT-2")


@pytest.fixture(scope="module")
def broken(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    root = tmp_path_factory.mktemp("broken, all of them")
    for name, (damage, _) in BROKEN.items():
        shutil.copytree(whole, root / name)
        damage(root / name)
    return {name: str(root / name) for name in BROKEN}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_model_gets_a_sentence_and_another_one_opens(name, broken, whole, open_app, monkeypatch) -> None:
    monkeypatch.setenv(MODELS_VARIABLE, "")
    offer_models([broken[name], str(whole)])
    app = open_app("pages/masks.py", **({"checkpoint": broken[name]} if len(name) % 2 else {}))
    assert not app.exception
    assert BROKEN[name][1] in said(app)
    assert str(Path(broken[name]).parent) not in said(app), "what lies where on the server is nobody's business"
    assert app.selectbox(key="checkpoint").options[:2] == [name, "whole"]
    assert {button.key for button in app.button} >= {"bar-share"}, "all of the frame"
    app.selectbox(key="checkpoint").set_value(str(whole)).run()
    assert not app.exception
    assert holds(app) == 3
    app.selectbox(key="checkpoint").set_value(DEFAULT_CHECKPOINT).run()
    assert holds(app) == 3


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Models without a tokenizer, or without a head that gives probabilities."""
    root = tmp_path_factory.mktemp("odd")
    for name in ("BERT", "GPT-2"):
        (save_family(root / name, name) / "tokenizer.json").unlink()
    for name in ("BartForSequenceClassification", "LlamaForSequenceClassification"):
        save_other_head(root / name, name)
    return {folder.name: str(folder) for folder in root.iterdir()}


@pytest.mark.parametrize(
    ("page", "name"),
    [
        *((page.path, "BERT") for page in EVERY_PAGE),
        *((f"pages/{page}.py", "GPT-2") for page in ("continue_text", "decoding", "what_if")),
        *((f"pages/{page}.py", "BartForSequenceClassification") for page in ("translate", "decoding", "what_if")),
        *((f"pages/{page}.py", "LlamaForSequenceClassification") for page in ("continue_text", "masks", "gradients")),
    ],
)
def test_token_ids_are_read_on_every_page(page, name, odd, open_app, monkeypatch) -> None:
    from model.checkpoints.store import load_checkpoint

    monkeypatch.setenv(MODELS_VARIABLE, ",".join(odd.values()))
    app = open_app(page, checkpoint=odd[name], source="5 17 42 9 30 11 8")
    assert_checked(app, missing_at(page_of(page), load_checkpoint(odd[name], "cpu").features))


def test_what_a_folder_holds_besides_is_said_in_the_sidebar(odd, open_app, monkeypatch) -> None:
    monkeypatch.setenv(MODELS_VARIABLE, ",".join(odd.values()))
    app = open_app("pages/masks.py", checkpoint=odd["LlamaForSequenceClassification"], source="5 17 42")
    captions = " ".join(caption.value for caption in app.sidebar.caption).replace("\\", "")
    assert "its head is not read" in captions
    assert "score.weight" in captions
