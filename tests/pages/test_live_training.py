"""The tab that trains in front of the visitor: it starts, goes on, is found by its id, and says when it is gone."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from model import live_training, train
from model.training import reversal_task
from pages.compute import trainings
from pages.widgets import live_training as widget
from pages.widgets import waiting_line
from tests.pages.figures import figure, numbers
from tests.pages.training_tab import open_tab, words

pytestmark = pytest.mark.usefixtures("checkpoint_folder", "fresh_caches")

open_page = partial(open_tab, "Train it in front of you")
RECIPE = (
    "--preset toy --d-model 16 --d-ff 16 --n-encoder-layers 1 --n-decoder-layers 1 --steps 4 --warmup 3 "
    "--max-tokens 200 --evaluate-every 2 --average 1"
)


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[trainings.Trainings]:
    """Small trainings, of which there may be one; those that are left are ended."""
    monkeypatch.setattr(reversal_task, "TRAIN_LINES", 400)
    monkeypatch.setattr(reversal_task, "DEV_LINES", 5)
    monkeypatch.setattr(widget, "LiveTraining", partial(live_training.LiveTraining, recipe=RECIPE))
    monkeypatch.setattr(widget, "SLICE_SECONDS", 0.0)  # a step at a time
    kept = trainings.Trainings(most=1)
    monkeypatch.setattr(widget, "all_trainings", lambda _: kept)
    yield kept
    for name in [*kept._kept]:
        kept.end(name)


def test_a_training_goes_on_with_each_run_until_it_is_done_and_is_found_by_its_id(kept: trainings.Trainings) -> None:
    page = open_page()
    page.button(key="live-start").click().run()
    (name,) = kept._kept
    assert name in page.query_params[widget.ID]
    while not kept.find(name).finished:
        page.run()
    page.run()
    assert "Done: 4 steps" in words(page).replace("*", "")
    reload = open_page(**{widget.ID: name})
    assert "Done: 4 steps" in words(reload).replace("*", "")
    assert kept.find(name).options in words(reload)
    other = open_page()
    other.button(key="live-start").click().run()
    assert "1 ahead of you" in words(other)
    reload.button(key="live-end").click().run()
    assert widget.ID not in reload.query_params
    other.run()
    assert kept.find(other.session_state[widget.ID])


@pytest.mark.parametrize(("ahead", "begun", "again"), [(1, False, 0), (0, False, 1), (1, True, 1)])
def test_who_waits_gets_the_whole_page_again_when_the_line_has_moved_or_the_training_has_begun(
    ahead: int, begun: bool, again: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[None] = []
    monkeypatch.setattr(waiting_line.st, "rerun", lambda: runs.append(None))
    line = SimpleNamespace(ahead=lambda _: ahead, find=lambda _: begun, most=1)
    waiting_line._show_place(line, "", 1)
    assert len(runs) == again


def test_the_drawn_curves_are_those_of_the_command_that_the_page_names(
    kept: trainings.Trainings, tmp_path: Path
) -> None:
    page = open_page()
    page.button(key="live-start").click().run()
    (name,) = kept._kept
    while not kept.find(name).finished:
        page.run()
    page.run()
    options = kept.find(name).options
    assert f"python -m model.train {options} --train" in words(page)
    reversal_task.main(["--out", str(tmp_path)])
    files = ["--train", str(tmp_path / "train.tsv"), "--dev", str(tmp_path / "dev.tsv"), "--out", str(tmp_path / "run")]
    train.main([*options.split(), *files])
    command = pd.read_csv(tmp_path / "run" / "log.csv")
    assert command["step"].tolist() == [2, 4]
    drawn = [*figure(page, "live-loss")["data"], *figure(page, "live-exact")["data"]]
    for line, column in zip(drawn, ("train_loss", "dev_loss", "dev_exact"), strict=True):
        assert np.array_equal(numbers(line["x"]), command["step"])
        assert np.allclose(numbers(line["y"]).astype(float), command[column], rtol=1e-5)


def test_an_id_that_is_gone_gets_a_sentence_and_a_new_start() -> None:
    page = open_page(**{widget.ID: "0" * 16})
    assert "is gone: " in words(page)
    assert page.button(key="live-start")


def test_a_change_of_one_page_is_not_taken_back_by_another(kept: trainings.Trainings) -> None:
    first = open_page()
    first.button(key="live-start").click().run()
    (name,) = kept._kept
    first.toggle(key="live-playing").set_value(False).run()
    second = open_page(**{widget.ID: name})
    assert not kept.find(name).changed
    first.selectbox(key="live-cut").set_value(8).run()
    assert kept.find(name).model.heads == 8
    second.run()
    assert kept.find(name).model.heads == 8
    assert "no command repeats it" in words(second)
