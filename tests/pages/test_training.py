"""Training: figures are the folder's files and the run's tensors; what is broken or missing is said."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import streamlit

from model.background import induction
from model.checkpoints.card import Card
from model.checkpoints.snapshots import open_snapshot
from model.checkpoints.store import CHECKPOINTS_VARIABLE, DEFAULT_CHECKPOINT, load_checkpoint, save_weights
from model.network.config import TransformerConfig
from model.run import Place, Request, Run
from model.training.loss import cross_entropies
from model.training.schedule import noam
from pages.views.model.training import curves, forming, schedule, sharpness, smoothing, snapshots
from tests.model.tiny import random_model
from tests.pages.conftest import SHIPPED
from tests.pages.figures import figure, lines, maps, open_alone, words

pytestmark = pytest.mark.usefixtures("fresh_caches")


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


def a_run(name: str = DEFAULT_CHECKPOINT, kind: str = "", layer: int = 0, head: int = 0) -> Run:
    """Of a checkpoint, on two words."""
    opened = load_checkpoint(name, "cpu")
    return Run.of(opened, opened.trace("a dog"), kind, layer, head)


@pytest.mark.usefixtures("folder")
def test_the_curves_and_rates_are_those_of_the_log_and_what_it_lacks_is_said() -> None:
    result, steps = curves(a_run()), np.arange(100, 700, 100)
    assert np.array_equal(lines(result, "loss")[0], 9 - steps / 100)
    assert np.allclose(lines(result, "score")[0], steps / 7)
    assert str(result.facts["lacks"]) == "dev_loss, tokens_per_second"
    rates = schedule(a_run(), warmup=1000)
    chosen, own, dots = rates.shows["schedule"].lines.values()
    assert np.array_equal(dots.x, steps)
    for curve, warmup in ((chosen, 1000), (own, 250)):
        assert np.allclose(curve.y, [noam(int(step), 32, warmup) for step in curve.x], rtol=1e-4)
    assert (round(rates.facts["fitted"].warmup), rates.facts["fitted"].factor) == (250, pytest.approx(1, abs=1e-3))


@pytest.mark.parametrize(
    ("name", "column"),
    [("en-de", "dev_bleu"), ("everyday-lm", "dev_bits_per_byte"), ("everyday-mlm", "dev_accuracy")],
)
def test_each_family_shows_the_score_that_its_own_log_has(
    name: str, column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(SHIPPED))
    result, log = curves(a_run(name)), pd.read_csv(SHIPPED / name / "log.csv")
    drawn = [line for picture in ("loss", "score", "speed") for line in lines(result, picture)]
    for values, logged in zip(drawn, ("train_loss", "dev_loss", column, "tokens_per_second"), strict=True):
        assert np.array_equal(values, log[logged].to_numpy(), equal_nan=True), logged
    several = ["3,800", "7,550", "9,800", "13,550", "14,550"]
    assert (result.facts["lacks"], [*map(str, result.facts["rises"])] == several) == ("", name == "everyday-lm")


def test_the_evenness_over_the_training_is_that_of_the_log(translator, monkeypatch) -> None:
    """A log has it from the row on at which the trainer began to measure it."""
    rows = (
        {"step": 100.0},
        {"step": 200.0, "evenness": 0.7, "evenness_encoder_self_0": 0.8},
        {"step": 300.0, "evenness": 0.4, "evenness_encoder_self_0": 0.5},
    )
    monkeypatch.setattr("pages.views.model.training.sharp_rows.card_of", lambda _: Card((), rows, "", Path(), "", {}))
    own = sharpness(Run.start(translator, Request("a dog"), Place("encoder_self", 0, 0))).shows["own"].lines
    assert [line.x.tolist() for line in own.values()] == [[200, 300]] * 2
    assert [line.y.tolist() for line in own.values()] == [[0.7, 0.4], [0.8, 0.5]]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5])
def test_the_smoothed_target_and_the_models_shares_are_those_of_the_run(epsilon: float) -> None:
    run = a_run()
    result, trace = smoothing(run, position=1, epsilon=epsilon), run.trace
    target, model = lines(result, "smoothing")
    assert np.isclose(target.sum(), 1)
    assert np.isclose(target[:-1].max(), 1 - epsilon + epsilon / trace.logits.shape[-1])
    right = int(target[:-1].argmax())
    (shade,) = result.shows["smoothing"].marks
    assert (shade.x, shade.to) == (right - 0.5, right + 0.5)
    assert np.isclose(model[right], trace.probabilities[1, trace.next_ids[1]], rtol=1e-12)
    assert np.allclose(np.sort(model[:10])[::-1], [c.probability for c in trace.candidates[1]], rtol=1e-12)
    shown = result.shows["shares"].frame.iloc[0]
    for label, share in (("one-hot", 0.0), ("smoothed", epsilon)):
        assert shown[f"nats, {label}"] == cross_entropies(trace.logits, trace.next_ids, share)[1]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("kind", "snapshot"), [("encoder_self", "10"), ("decoder_self", "10"), ("cross", "end")])
def test_the_pattern_is_the_snapshots_own_on_the_final_translation(kind: str, snapshot: str) -> None:
    run = a_run(kind=kind, layer=1, head=2)
    result = snapshots(run, snapshot=snapshot, every=True)
    weights = open_snapshot(run.opened, 10) if snapshot != "end" else run.opened
    attention = weights.rerun(run.trace, run.trace.interventions).attention(kind, 1)
    (shown,) = maps(result, "pattern")
    np.testing.assert_array_equal(shown, np.where(attention.mask[2], attention.pattern[2], np.nan))
    assert result.facts["hash"] == weights.hash[:12]
    table = result.shows["steps"]
    assert table["step"].tolist() == ["10", "600"]
    greedy = [t.translate(["a dog"], beam_size=1)[0] for t in (open_snapshot(run.opened, 10), run.opened)]
    assert table["greedy translation"].tolist() == greedy


@pytest.mark.parametrize("name", ["lm", "mlm"])
def test_a_model_that_does_not_translate_shows_its_snapshots_without_a_translation(
    name: str, families: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "families" / name
    shutil.copytree(families / name, folder)
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(folder.parent))
    (folder / "snapshots").mkdir()
    shutil.copy(folder / "model.safetensors", folder / "snapshots" / "step-000010.safetensors")
    table = snapshots(a_run(name), snapshot="10", every=True).shows["steps"]
    assert table["step"].tolist() == ["10", "end"]
    assert np.allclose(*table["nats per token of this text"])
    assert "greedy translation" not in table


def test_without_snapshots_the_page_opens_a_checkpoint_that_has_them(folder: Path) -> None:
    shutil.copytree(folder, folder.parent / "with-snapshots")
    shutil.rmtree(folder / "snapshots")
    page = open_alone("training", training="Attention through training")
    page.button(key="open-with").click().run()
    assert page.selectbox(key="checkpoint").value == "with-snapshots"
    assert figure(page, "training-pattern")


def test_a_broken_snapshot_and_a_missing_log_are_said(folder: Path) -> None:
    (folder / "snapshots" / "step-000010.safetensors").write_bytes(b"x")
    (folder / "log.csv").unlink()
    error = str(snapshots(a_run(), snapshot="10").facts["error"])
    assert "snapshots/step-000010.safetensors is not a valid safetensors file" in error
    assert str(folder.parent) not in error
    assert "This checkpoint has no log.csv" in str(curves(a_run()).facts["without"])
    assert schedule(a_run()).facts["logged"] == 0


def test_an_old_link_to_the_parts_since_2017_says_where_they_are(open_app: Callable) -> None:
    app = open_app("pages/training.py", training="Parts since 2017")
    assert "the tab “What each part buys” of the page Since 2017" in words(app)
    assert "of the page Since 2017" not in words(open_app("pages/training.py", training="Ablations"))


def test_without_the_small_model_the_tab_says_how_to_train_it_and_of_a_damaged_table_which(folder: Path) -> None:
    result = forming(a_run())
    assert not result.shows
    assert "python -m model.commands.induction" in " ".join(block.text for block in result.blocks)
    table = folder.parent / induction.CHECKPOINT / induction.FILE
    table.parent.mkdir(parents=True)
    table.write_text("step,layer\n0,0\n")
    result = forming(a_run())
    assert not result.shows
    assert induction.FILE in str(result.facts["problem"])
