"""A training that is still writing: its newest checkpoint is offered, its steps are compared, none is held."""

import shutil
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.devices import freeze_loaded_objects
from model.checkpoints.snapshots import open_snapshot, snapshot_path, snapshot_steps
from model.checkpoints.store import CHECKPOINTS_VARIABLE, MODELS_VARIABLE, load_checkpoint, save_weights
from model.run import Run
from model.train import new_trainer
from pages.compute.cache import shared_cache
from pages.compute.runs import open_translator
from pages.views.model.training import moved, snapshots
from tests.model.checkpoints.huggingface.training_folder import save_step
from tests.model.tiny import random_model, write_pairs
from tests.pages.figures import maps, warned, words

TEXT = "A dog runs through the snow."
TABS = ("Attention through training", "Which head moved most")


pytestmark = pytest.mark.usefixtures("fresh_caches")


@pytest.fixture
def trainers(tmp_path: Path) -> Path:
    """The folder of a Hugging Face Trainer."""
    for step in (100, 200):
        save_step(tmp_path / "run", step)
    return tmp_path / "run"


@pytest.fixture
def own(saved_checkpoints: Path, tmp_path: Path, tiny_config, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A translator of ours with three snapshots."""
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(tmp_path))
    shutil.copytree(saved_checkpoints / "en-de", tmp_path / "own")
    (tmp_path / "own" / "snapshots").mkdir()
    for step in (0, 10, 32):
        save_weights(
            snapshot_path(tmp_path / "own", step), dict(random_model(tiny_config, seed=step).named_parameters())
        )
    return tmp_path / "own"


@pytest.fixture
def watch(trainers: Path, open_app: Callable, monkeypatch: pytest.MonkeyPatch) -> Callable:
    """Opens a tab of Training in an app that was started with the Trainer's folder."""
    monkeypatch.setenv(MODELS_VARIABLE, str(trainers))
    return lambda tab=TABS[1], **query: open_app("pages/training.py", training=tab, source=TEXT, **query)


def run_of(folder: Path, place: tuple = ("", 0, 1)) -> Run:
    opened = load_checkpoint(str(folder), "cpu")
    return Run.of(opened, opened.trace(TEXT), *place)


@pytest.mark.parametrize(
    ("name", "since", "until"), [("own", "10", "end"), ("own", "0", "32"), ("trainers", "100", "end")]
)
def test_a_head_moved_by_the_share_of_weight_on_other_keys(name, since, until, request):
    run = run_of(request.getfixturevalue(name))
    result = moved(run, since=since, until=until)
    before, after = (
        (run.opened if step == "end" else open_snapshot(run.opened, int(step))).rerun(run.trace, ())
        for step in (since, until)
    )
    distances = {}
    for (kind, layer), attention in before.attentions.items():
        for head, (one, other) in enumerate(zip(attention.pattern, after.attention(kind, layer).pattern, strict=True)):
            apart = np.abs(one.astype(float) - other.astype(float)).sum(axis=-1).mean() / 2
            distances[kind, layer, head] = apart
            np.testing.assert_allclose(result.shows["heads"].values[kind][layer, head], apart, rtol=1e-6)
    most = result.facts["most"]
    assert distances[most.kind, most.layer, most.head] == pytest.approx(max(distances.values()), rel=1e-6)
    assert result.facts["distance"] == pytest.approx(max(distances.values()), rel=1e-6)
    assert result.facts["own"] == pytest.approx(distances[run.kind, 0, 1], rel=1e-6)


def test_a_head_over_the_steps_is_that_of_each_step_on_the_same_tokens(own):
    run = run_of(own, ("cross", 1, 2))
    shown = maps(moved(run), "panels")
    opened = [*(open_snapshot(run.opened, step) for step in snapshot_steps(own)), run.opened]
    for one, values in zip(opened, shown, strict=True):
        np.testing.assert_array_equal(values, one.rerun(run.trace, ()).attention("cross", 1).pattern[2])
    assert len(maps(moved(run, since="10", until="10"), "panels")) == 1
    back = moved(run, since="32", until="0")
    assert len(maps(back, "panels")) == back.facts["between"] == 3


def test_a_step_whose_file_is_damaged_is_left_out_with_a_sentence_and_cannot_be_compared(own):
    path = snapshot_path(own, 10)
    path.write_bytes(path.read_bytes()[:3000])
    run = run_of(own)
    result = moved(run)
    assert list(result.shows["panels"].maps) == ["step 0", "step 32", "end"]
    (problem,) = result.facts["skipped"]
    assert "snapshots/step-000010.safetensors is not a valid safetensors file" in problem
    assert "snapshots/step-000010.safetensors" in moved(run, since="10").facts["error"]
    assert len(snapshots(run, every=True).shows["steps"]) == 3


@pytest.mark.parametrize("other", ["family", "tokenizer"])
def test_a_step_of_another_model_is_named(trainers, other):
    run = run_of(trainers)
    if other == "family":
        shutil.rmtree(trainers / "checkpoint-100")
        save_step(trainers, 100, "Llama, grouped")
    else:
        (trainers / "checkpoint-100" / "tokenizer.json").unlink()
    assert "belongs to a different model" in moved(run).facts["error"]


def test_one_finished_checkpoint_waits_for_a_second(trainers):
    shutil.rmtree(trainers / "checkpoint-100")
    result = moved(run_of(trainers))
    assert (result.shows, result.lacks) == ({}, None)
    assert "one finished checkpoint, from step 200" in " ".join(block.text for block in result.blocks)


def test_a_checkpoint_that_is_finished_meanwhile_is_offered_and_opens_on_a_click_alone(watch, trainers):
    app = watch(layer="1", head="2")
    assert "step 200" in app.title[0].value
    assert not app.get("button") or "open-again" not in [each.key for each in app.button]
    app.text_area(key="source").set_value("Two dogs run.").run()
    unfinished = save_step(trainers, 300) / "trainer_state.json"
    state = unfinished.read_bytes()
    unfinished.write_bytes(state[:100])
    app.run()
    assert "open-again" not in [each.key for each in app.button]
    assert "checkpoint-300 is not finished" in words(app)
    unfinished.write_bytes(state)
    app.run()
    (offer,) = (each for each in app.button if each.key == "open-again")
    assert offer.label == "Open step 300"
    assert "The newest checkpoint of run is now step 300" in warned(app)
    assert "step 200" in app.title[0].value
    assert app.select_slider(key="until-step").options == ["100", "200", "300"]
    offer.click().run()
    assert "step 300" in app.title[0].value
    assert "open-again" not in [each.key for each in app.button]
    assert app.text_area(key="source").value == "Two dogs run."
    assert (app.query_params["layer"], app.query_params["head"]) == ("1", "2")


def test_each_evaluation_of_our_own_trainer_is_offered_while_it_writes(open_app, tmp_path, monkeypatch):
    """Its training goes on between the runs of the page."""
    data = write_pairs(tmp_path / "pairs.tsv")
    folder, files = tmp_path / "mine", ["--train", str(data), "--dev", str(data), "--device", "cpu"]
    small = ["--preset", "toy", "--vocab-size", "360", "--max-len", "40", "--steps", "12", "--evaluate-every", "4"]
    steps = new_trainer([*files, *small, "--out", str(folder)]).run()
    next(steps)
    monkeypatch.setenv(MODELS_VARIABLE, str(folder))
    app = open_app("pages/training.py", training=TABS[1], source="A dog.", target="Greedy")
    assert "mine has no checkpoint yet" in words(app)
    for step in (4, 8, 12):
        while next(steps).step < step:
            pass
        app.run()
        if step > 4:
            (offer,) = (each for each in app.button if each.key == "open-again")
            assert offer.label == f"Open step {step}"
            offer.click().run()
        assert "open-again" not in [each.key for each in app.button]
        assert app.select_slider(key="until-step").options == ["0", *(["10"] if step > 10 else []), str(step)]


@pytest.mark.parametrize("tab", TABS)
def test_neither_an_earlier_step_nor_the_one_that_was_open_before_is_held(watch, trainers, tab):
    app = watch(tab, **{"all-steps": "true"})
    held = [value for value in shared_cache()._results.values() if isinstance(value, Checkpoint)]
    assert not held, "only what was read with an earlier step is kept"
    before = weakref.ref(open_translator(str(trainers), "cpu").model)
    save_step(trainers, 300)
    app.run()
    app.button(key="open-again").click().run()
    freeze_loaded_objects()
    assert before() is None


@pytest.mark.parametrize("tab", TABS)
def test_a_step_that_is_deleted_while_it_is_on_screen_leaves_the_page_with_what_is_there(watch, trainers, tab):
    save_step(trainers, 150)
    app = watch(tab, **{"snapshot": "100", "since-step": "100"})
    shutil.rmtree(trainers / "checkpoint-100")
    app.run()
    slider = next(each for each in app.select_slider if each.key in ("snapshot", "since-step"))
    assert "100" not in slider.options
    shutil.rmtree(trainers)
    app.run()
    assert "have been deleted since it was opened" in warned(app)
    assert "open-again" not in [each.key for each in app.button]


def test_an_app_may_be_started_before_the_first_checkpoint_is_finished(watch, trainers):
    shutil.rmtree(trainers / "checkpoint-100")
    state = trainers / "checkpoint-200" / "trainer_state.json"
    content = state.read_bytes()
    state.unlink()
    app = watch()
    assert "run has no finished checkpoint yet" in words(app)
    assert str(trainers) not in words(app)
    state.write_bytes(content)
    assert "step 200" in app.run().title[0].value
