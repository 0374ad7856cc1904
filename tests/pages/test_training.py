"""The page on training without a browser: its figures are the folder's files and the run's tensors."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import streamlit
from streamlit.testing.v1 import AppTest

from model.background import induction
from model.checkpoints.card import Card
from model.checkpoints.snapshots import open_snapshot
from model.checkpoints.store import (
    CHECKPOINTS_VARIABLE,
    DEFAULT_CHECKPOINT,
    checkpoint_folder,
    load_checkpoint,
    save_weights,
)
from model.network.config import TransformerConfig
from model.run import Place, Request, Run
from model.training.loss import cross_entropies
from model.training.schedule import noam
from pages.views.model.training import sharpness
from tests.model.tiny import random_model
from tests.pages.figures import figure, numbers

pytestmark = pytest.mark.usefixtures("fresh_caches")

PAGE = str(Path(__file__).parents[2] / "pages" / "training.py")
SOURCES = ["A", "A dog runs. " * 6, "a dog " * 40]
TABS = ["Loss and score", "Learning rate", "Label smoothing", "Attention through training"]


@pytest.fixture
def folder(
    saved_checkpoints: Path, tmp_path: Path, tiny_config: TransformerConfig, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The tiny checkpoint with a log of six rows and one snapshot."""
    shutil.copytree(saved_checkpoints, tmp_path / "checkpoints")
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(tmp_path / "checkpoints"))
    streamlit.cache_resource.clear()
    folder = tmp_path / "checkpoints" / DEFAULT_CHECKPOINT
    rates = [f"{step},{noam(step, 32, 250):.6g},{9 - step / 100},{step / 7}" for step in range(100, 700, 100)]
    (folder / "log.csv").write_text("\n".join(["step,learning_rate,train_loss,dev_bleu", *rates, ""]))
    (folder / "snapshots").mkdir()
    weights = dict(random_model(tiny_config, seed=5).named_parameters())
    save_weights(folder / "snapshots" / "step-000010.safetensors", weights)
    return folder


def open_page(tab: str, **state: object) -> AppTest:
    page = AppTest.from_file(PAGE, default_timeout=120)
    for key, value in {"training": tab, **state}.items():
        page.session_state[key] = value
    page.run()
    assert not page.exception
    return page


def said(page: AppTest) -> str:
    """All sentences, without the backslashes that keep names from being read as Markdown."""
    kinds = page.caption, page.info, page.text, page.markdown
    return " ".join(element.value for kind in kinds for element in kind).replace("\\", "")


@pytest.mark.usefixtures("folder")
def test_the_curves_and_rates_are_those_of_the_log_and_what_it_lacks_is_said() -> None:
    page = open_page("Loss and score")
    steps = np.arange(100, 700, 100)
    (train,), (bleu,) = (figure(page, f"training-{name}")["data"] for name in ("loss", "score"))
    assert np.array_equal(numbers(train["y"]), 9 - steps / 100)
    assert np.allclose(numbers(bleu["y"]), steps / 7)
    assert "log.csv lacks: dev_loss, tokens_per_second" in said(page)
    page = open_page("Learning rate", warmup=1000)
    chosen, own, dots = figure(page, "training-schedule")["data"]
    assert np.array_equal(numbers(dots["x"]), steps)
    for curve, warmup in ((chosen, 1000), (own, 250)):
        equation = [noam(int(step), 32, warmup) for step in numbers(curve["x"])]
        assert np.allclose(numbers(curve["y"]), equation, rtol=1e-4)
    assert "warm-up of 250 steps and a factor of 1," in said(page)


@pytest.mark.parametrize(
    ("name", "column"),
    [("en-de", "dev_bleu"), ("everyday-lm", "dev_bits_per_byte"), ("everyday-mlm", "dev_accuracy")],
)
def test_each_family_shows_the_score_that_its_own_log_has(name: str, column: str) -> None:
    page = open_page("Loss and score", checkpoint=name)
    log = pd.read_csv(checkpoint_folder() / name / "log.csv")
    curves = [line for name in ("loss", "score", "speed") for line in figure(page, f"training-{name}")["data"]]
    for drawn, logged in zip(curves, ("train_loss", "dev_loss", column, "tokens_per_second"), strict=True):
        assert np.array_equal(numbers(drawn["y"]), log[logged].to_numpy(), equal_nan=True), logged
    assert "log.csv lacks" not in said(page)
    several = "This log holds several runs: by steps 3,800, 7,550, 9,800, 13,550 and 14,550"
    assert (several in said(page)) == (name == "everyday-lm")


def test_the_evenness_over_the_training_is_that_of_the_log(translator, monkeypatch) -> None:
    """A log has it from the row on at which the trainer began to measure it."""
    rows = (
        {"step": 100.0},
        {"step": 200.0, "evenness": 0.7, "evenness_encoder_self_0": 0.8},
        {"step": 300.0, "evenness": 0.4, "evenness_encoder_self_0": 0.5},
    )
    monkeypatch.setattr("pages.views.model.training.sharp_rows.card_of", lambda _: Card((), rows, "", {}, "", {}))
    own = sharpness(Run.start(translator, Request("a dog"), Place("encoder_self", 0, 0))).shows["own"].lines
    assert [line.x.tolist() for line in own.values()] == [[200, 300]] * 2
    assert [line.y.tolist() for line in own.values()] == [[0.7, 0.4], [0.8, 0.5]]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5])
def test_the_smoothed_target_and_the_models_shares_are_those_of_the_run(epsilon: float) -> None:
    page = open_page("Label smoothing", source="a dog", epsilon=epsilon, position=1)
    translator = load_checkpoint(DEFAULT_CHECKPOINT, "cpu")
    trace = translator.trace("a dog")
    target, model = (numbers(drawn["y"]) for drawn in figure(page, "training-smoothing")["data"])
    assert np.isclose(target.sum(), 1)
    assert np.isclose(target[:-1].max(), 1 - epsilon + epsilon / trace.logits.shape[-1])
    right = int(target[:-1].argmax())
    assert np.isclose(model[right], trace.probabilities[1, trace.next_ids[1]], rtol=1e-12)
    assert np.allclose(np.sort(model[:10])[::-1], [c.probability for c in trace.candidates[1]], rtol=1e-12)
    shown = page.dataframe[0].value.iloc[0]
    for label, smoothing in (("one-hot", 0.0), ("smoothed", epsilon)):
        assert shown[f"nats, {label}"] == cross_entropies(trace.logits, trace.next_ids, smoothing)[1]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("kind", "snapshot"), [("encoder_self", "10"), ("decoder_self", "10"), ("cross", "end")])
def test_the_pattern_is_the_snapshots_own_on_the_final_translation(kind: str, snapshot: str) -> None:
    place = {"source": "a dog", "kind": kind, "layer": 1, "head": 2}
    page = open_page("Attention through training", snapshot=snapshot, **{"all-steps": True}, **place)
    translator = load_checkpoint(DEFAULT_CHECKPOINT, "cpu")
    trace = translator.trace("a dog")
    weights = open_snapshot(translator, 10) if snapshot != "end" else translator
    attention = weights.rerun(trace, trace.interventions).attention(kind, 1)
    shown = numbers(figure(page, "training-pattern")["data"][0]["z"]).astype(float)
    assert np.array_equal(np.isnan(shown), ~attention.mask[2])
    assert np.array_equal(shown[attention.mask[2]], attention.pattern[2][attention.mask[2]])
    table = page.dataframe[0].value
    assert table["step"].tolist() == ["10", "600"]
    greedy = [t.translate(["a dog"], beam_size=1)[0] for t in (open_snapshot(translator, 10), translator)]
    assert table["greedy translation"].tolist() == greedy
    assert weights.hash[:12] in said(page)


@pytest.mark.parametrize("name", ["lm", "mlm"])
def test_a_model_that_does_not_translate_shows_its_snapshots_without_a_translation(
    name: str, families: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "families" / name
    shutil.copytree(families / name, folder)
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(folder.parent))
    (folder / "snapshots").mkdir()
    shutil.copy(folder / "model.safetensors", folder / "snapshots" / "step-000010.safetensors")
    page = open_page(
        "Attention through training", checkpoint=name, source="a dog", snapshot="10", **{"all-steps": True}
    )
    assert figure(page, "training-pattern")
    table = page.dataframe[0].value
    assert table["step"].tolist() == ["10", "end"]
    assert np.allclose(*table["nats per token of this text"])
    assert "greedy translation" not in table


def test_without_snapshots_the_page_opens_a_checkpoint_that_has_them(folder: Path) -> None:
    shutil.copytree(folder, folder.parent / "with-snapshots")
    shutil.rmtree(folder / "snapshots")
    page = open_page("Attention through training")
    page.button(key="open-with").click().run()
    assert not page.exception
    assert page.selectbox(key="checkpoint").value == "with-snapshots"
    assert figure(page, "training-pattern")


def test_a_broken_snapshot_and_a_missing_log_are_sentences(folder: Path) -> None:
    (folder / "snapshots" / "step-000010.safetensors").write_bytes(b"x")
    (folder / "log.csv").unlink()
    page = open_page("Attention through training", snapshot="10")
    assert "snapshots/step-000010.safetensors is not a valid safetensors file" in said(page)
    assert str(folder.parent) not in said(page)
    assert "This checkpoint has no log.csv" in said(open_page("Loss and score"))
    assert "does not say which learning rates" in said(open_page("Learning rate"))


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("tab", TABS)
def test_short_and_long_sentences_are_shown_and_forged_state_falls_back(tab: str) -> None:
    for source in SOURCES:
        open_page(tab, source=source, snapshot="99", over="<b>", warmup=10**9, kind="cross")


def test_an_old_link_to_the_parts_since_2017_says_where_they_are(open_app: Callable) -> None:
    app = open_app("pages/training.py", training="Parts since 2017")
    assert not app.exception
    assert "the tab “What each part buys” of the page Since 2017" in said(app)
    assert "of the page Since 2017" not in said(open_app("pages/training.py", training="Ablations"))


def test_without_the_small_model_the_tab_says_how_to_train_it_and_of_a_damaged_table_which(folder: Path) -> None:
    assert "python -m model.commands.induction" in said(open_page("An induction head forms"))
    table = folder.parent / induction.CHECKPOINT / induction.FILE
    table.parent.mkdir(parents=True)
    table.write_text("step,layer\n0,0\n")
    page = open_page("An induction head forms")
    assert induction.FILE in said(page)
    assert not page.get("plotly_chart")
