"""A broken checkpoint on every page: a sentence, and the app goes on with the others."""

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.pages.test_pages import ALL_PAGES, TWO_PAGES, holds, said

pytest.importorskip("streamlit")

pytestmark = pytest.mark.usefixtures("fresh_caches")

WEIGHTS, VOCABULARY, CONFIG = "model.safetensors", "tokenizer.model", "config.json"


def rewrite(folder: Path, change: Callable[[dict], object]) -> None:
    config = json.loads((folder / CONFIG).read_text())
    change(config)
    (folder / CONFIG).write_text(json.dumps(config))


def poison(folder: Path) -> None:
    """One weight that is no number, and a hash that agrees."""
    import torch
    from safetensors.torch import load_file, save_file

    from model.checkpoints.store import sha256

    weights = load_file(folder / WEIGHTS)
    next(iter(weights.values())).view(-1)[0] = torch.nan
    save_file(weights, folder / WEIGHTS)
    rewrite(folder, lambda config: config["sha256"].update({WEIGHTS: sha256(folder / WEIGHTS)}))


def lie_about_the_header(folder: Path) -> None:
    from model.checkpoints.store import sha256

    content = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(struct.pack("<Q", 2**62) + content[8:])
    rewrite(folder, lambda config: config["sha256"].update({WEIGHTS: sha256(folder / WEIGHTS)}))


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "NaN in the weights": (poison, "that are not finite numbers"),
    "a header that lies": (lie_about_the_header, "is not a valid safetensors file"),
    "weights cut off": (lambda folder: (folder / WEIGHTS).write_bytes(b"short"), "truncated or altered"),
    "no vocabulary": (lambda folder: (folder / VOCABULARY).unlink(), "is missing"),
    "another configuration": (
        lambda folder: rewrite(folder, lambda config: config["model"].update(n_heads=2)),
        "not those that were saved",
    ),
    "a configuration that is no JSON": (lambda folder: (folder / CONFIG).write_text("{"), "is not a checkpoint's"),
}


@pytest.fixture
def broken(checkpoint_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of checkpoints of which the one named "broken" is to be damaged."""
    good = next(checkpoint_folder.iterdir())
    shutil.copytree(good, tmp_path / good.name)
    shutil.copytree(good, tmp_path / "broken")
    monkeypatch.setenv("ATTENTION_EXPLORER_CHECKPOINTS", str(tmp_path))
    return tmp_path / "broken"


@pytest.mark.parametrize(
    ("kind", "pages"), [*zip(DAMAGE, [ALL_PAGES, *[TWO_PAGES] * (len(DAMAGE) - 1)], strict=True)], ids=list(DAMAGE)
)
def test_a_page_says_what_is_wrong_and_the_good_checkpoint_still_works(
    kind: str, pages: list[str], broken: Path, open_app: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The fixture that opens the app points at the shared folder again.
    monkeypatch.setenv("ATTENTION_EXPLORER_CHECKPOINTS", str(broken.parent))
    damage, sentence = DAMAGE[kind]
    damage(broken)
    app = open_app(checkpoint="broken")
    for page in pages:
        app.switch_page(page).run()
        assert not app.exception, page
        assert sentence in said(app), page
    app.selectbox(key="checkpoint").set_value(next(p.name for p in broken.parent.iterdir() if p != broken)).run()
    assert not app.exception
    assert holds(app) == 3


CARD = {
    "metrics.json": (b'{"a": {"scores": {"BLEU": {"value": 1e999', b"[]", b"\xff\xfe", b'{"a": {"beam_size": 1e999}}'),
    "log.csv": (b"step,dev_loss\ninf,1\n", b"step\n" + b"1" * 200_000, b"\xff\xfe", b"a,b\nx,y\n", b"step\n"),
    "README.md": (b"\xff\xfe",),
}


@pytest.mark.parametrize("page", ["pages/training.py", "pages/model_card.py"])
@pytest.mark.parametrize("name", CARD)
def test_a_broken_log_score_or_readme_is_said_in_a_sentence(
    page: str, name: str, broken: Path, open_app: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    import streamlit as st

    monkeypatch.setenv("ATTENTION_EXPLORER_CHECKPOINTS", str(broken.parent))
    for content in CARD[name]:
        (broken / name).write_bytes(content)
        st.cache_resource.clear()
        st.cache_data.clear()
        app = open_app(page, checkpoint="broken", card="Data, terms, limits")
        assert not app.exception, content[:40]
        assert holds(app) == 3, content[:40]


def test_broken_snapshots_get_a_sentence_and_the_page_goes_on(
    broken: Path, open_app: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATTENTION_EXPLORER_CHECKPOINTS", str(broken.parent))
    (broken / "snapshots").mkdir()
    for step, content in ((10, b""), (20, (broken / WEIGHTS).read_bytes()[:5000]), (30, b"\xff" * 100)):
        (broken / "snapshots" / f"step-{step:06}.safetensors").write_bytes(content)
    for step in ("10", "20", "30"):
        app = open_app("pages/training.py", checkpoint="broken", training="Attention through training", snapshot=step)
        assert not app.exception
        assert "is not a valid safetensors file" in said(app)
        assert holds(app) == 3
