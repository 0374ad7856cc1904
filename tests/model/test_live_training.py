"""A training in the app is that of the command line, and goes on through pauses and changes."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

from model import live_training, train
from model.live_training import LiveTraining, TrainedModel
from model.training import reversal_task

RECIPE = (
    "--preset toy --d-model 16 --d-ff 16 --n-encoder-layers 1 --n-decoder-layers 1 --steps 12 --warmup 3 "
    "--max-tokens 200 --evaluate-every 4 --average 1"
)
pytestmark = pytest.mark.usefixtures("few_letters")
CURVES = ["step", "learning_rate", "train_loss", "dev_loss", "dev_bleu", "dev_exact"]


@pytest.fixture
def training() -> Iterator[LiveTraining]:
    training = LiveTraining(seed=3, heads=2, recipe=RECIPE)
    yield training
    training.close()


@pytest.fixture(scope="module")
def alone() -> pd.DataFrame:
    """The curve of a training that nobody changes and that has no other beside it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reversal_task, "TRAIN_LINES", 400)
        patch.setattr(reversal_task, "DEV_LINES", 5)
        training = LiveTraining(seed=3, heads=2, recipe=RECIPE)
        finish(training)
        log = training.log
        training.close()
    return log


def finish(training: LiveTraining) -> None:
    while not training.finished:
        assert list(training.go_on(0.0)) == [training.step]


def test_the_same_seed_gives_the_curve_of_the_command(training, tmp_path) -> None:
    finish(training)
    reversal_task.main(["--out", str(tmp_path)])
    files = ["--train", str(tmp_path / "train.tsv"), "--dev", str(tmp_path / "dev.tsv"), "--out", str(tmp_path / "run")]
    train.main([*training.options.split(), *files])
    command = pd.read_csv(tmp_path / "run" / "log.csv")
    assert command["step"].tolist() == [4, 8, 12]
    assert np.array_equal(training.log[CURVES], command[CURVES])


def test_trainings_side_by_side_are_those_alone(training, alone) -> None:
    other = LiveTraining(4, 2, RECIPE)
    while not (training.finished and other.finished):
        list(training.go_on(0.0)), list(other.go_on(0.0))
    assert np.array_equal(training.log[CURVES], alone[CURVES])
    assert not np.array_equal(other.log[CURVES], alone[CURVES])
    other.close()


def test_one_thread_at_a_time_takes_steps(training) -> None:
    steps = training.go_on(100.0)
    assert next(steps) == 1
    assert list(training.go_on(100.0)) == []
    steps.close()
    assert list(training.go_on(0.0)) == [2]


@pytest.mark.parametrize(
    "model", [TrainedModel(heads=8), TrainedModel(heads=2, scaled=False), TrainedModel(heads=2, masked=False)]
)
def test_what_is_changed_acts_from_the_next_step_on_the_same_weights(training, alone, model) -> None:
    list(training.go_on(0.0))
    before = training.trace()
    training.change(model)
    after = training.trace()
    assert training.changed
    assert np.array_equal(before.streams["decoder"].embedded.sum, after.streams["decoder"].embedded.sum)
    assert after.attention("cross", 0).n_heads == model.heads
    assert after.attention("cross", 0).scale == pytest.approx((16 / model.heads) ** -0.5 if model.scaled else 1.0)
    assert after.attention("decoder_self", 0).mask.all() != model.masked
    finish(training)
    assert training.step == 12
    assert not np.array_equal(training.log["dev_loss"], alone["dev_loss"])


def test_the_rate_is_multiplied(training, alone) -> None:
    list(training.go_on(0.0))
    training.change(TrainedModel(rate=3.0, heads=2))
    finish(training)
    assert training.log["learning_rate"].to_numpy() == pytest.approx(3 * alone["learning_rate"].to_numpy(), rel=1e-4)


def test_a_rate_that_is_far_too_high_ends_in_a_sentence_and_not_in_an_error(training) -> None:
    list(training.go_on(0.0))
    training.change(TrainedModel(rate=1e12, heads=2))
    finish(training)
    assert training.problem
    assert training.step < 12
    assert list(training.go_on(1.0)) == []


def test_closing_deletes_its_files(training) -> None:
    folder = training._out
    list(training.go_on(0.0))
    assert folder.exists()
    training.close()
    assert not folder.parent.exists()


def test_the_recipe_is_that_of_the_manual_but_for_how_often_it_measures() -> None:
    manual = (train.Path(__file__).parents[2] / "docs" / "training.md").read_text(encoding="utf-8")
    options = live_training.RECIPE.split(" --evaluate-every")[0].removeprefix("--preset toy ")
    assert options in " ".join(manual.replace("\\\n", " ").split())
