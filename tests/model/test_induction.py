"""The small model with an induction head: its table says what the shipped weights do, on tokens it never saw."""

from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

from model.analysis.heads.induction import measure_repetition
from model.background.induction import CHECKPOINT, COLUMNS, FILE, KIND, Forming, read_forming
from model.checkpoints.language_model import LanguageModel
from model.checkpoints.snapshots import open_snapshot, snapshot_steps
from model.checkpoints.store import CHECKPOINTS_VARIABLE, checkpoint_path, load_checkpoint
from model.commands import induction as training

SHIPPED = Path(__file__).parents[2] / "checkpoints"


@pytest.fixture(scope="module")
def shipped() -> LanguageModel:
    """The model with its last weights."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CHECKPOINTS_VARIABLE, str(SHIPPED))
        return load_checkpoint(CHECKPOINT, "cpu")


@pytest.fixture(scope="module")
def forming() -> Forming:
    """The shipped table."""
    return read_forming(SHIPPED / CHECKPOINT)


def test_without_the_head_the_repetition_costs_more_and_without_its_layer_or_the_head_before_it_is_forgotten(
    shipped, forming
) -> None:
    measured = measure_repetition(shipped, seed=99)
    layer, _ = forming.heads[forming.induction]
    assert measured.prefix_matching[forming.induction] > 0.9, "on tokens that it never saw"
    assert measured.second < 0.1 < 4 < measured.first, "a random token cannot be guessed, one that comes again can"
    assert measured.without[forming.induction] > 10 * measured.second
    assert min(measured.without[forming.previous], measured.without_layer[layer]) > measured.second + 2


def test_the_last_row_of_the_table_is_what_the_shipped_weights_do(shipped, forming) -> None:
    measured = measure_repetition(shipped)
    assert measured.heads == forming.heads
    assert [measured.first, measured.second] == pytest.approx(forming.losses[:, -1], rel=1e-2, abs=1e-3)
    for name in ("prefix_matching", "previous_token", "without"):
        assert getattr(measured, name) == pytest.approx(getattr(forming, name)[-1], rel=1e-2, abs=1e-3), name


def test_the_table_shows_the_loss_fall_when_the_head_forms(forming) -> None:
    assert len(forming.steps) >= 25
    moment, (first, second) = forming.moment, forming.losses
    assert 0 < moment < len(forming.steps) - 1
    assert forming.heads[forming.previous][0] < forming.heads[forming.induction][0]
    assert second[:moment].min() > 10 * second[-1]
    assert first.min() > 4  # about ln 63: random tokens cannot be learned


def test_the_saved_steps_are_measured_ones_and_open_with_what_the_table_says(shipped, forming, monkeypatch) -> None:
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(SHIPPED))
    saved = snapshot_steps(checkpoint_path(CHECKPOINT))
    assert set(saved) < set(forming.steps.tolist())
    assert saved[0] < forming.steps[forming.moment] <= saved[-1]
    place = forming.steps.tolist().index(saved[-1])
    measured = measure_repetition(open_snapshot(shipped, saved[-1]))
    assert measured.prefix_matching == pytest.approx(forming.prefix_matching[place], abs=0.02)


def test_the_moment_is_the_first_step_from_which_on_the_score_stays_at_half_of_the_last() -> None:
    def moment(*scores: float) -> int:
        table = np.array([scores, np.zeros(len(scores))]).T
        return Forming(np.arange(len(scores)), table.T, ((1, 0), (1, 1)), table, table, table).moment

    assert moment(0.1, 0.1, 0.6, 0.9) == 2
    assert moment(0.1, 0.8, 0.2, 0.45, 0.9) == 3  # it was lost once
    assert moment(0.9, 0.9) == 0
    assert moment(0.1, 0.2, 0.9) == 2


def test_each_text_repeats_after_its_own_period_and_only_the_repetition_counts() -> None:
    opened = training.new_model(0)
    for ids, counts in islice(training.batches(opened.tokenizer, 0), 3):
        assert ids.shape == (training.BATCH, 1 + training.LENGTH)
        for text, known in zip(ids[:, 1:], counts, strict=True):
            period = int(np.flatnonzero(known == 1)[0]) - 1
            assert training.SHORTEST <= period <= training.LONGEST
            assert torch.equal(text[period:], text[:-period])


def test_a_short_training_writes_a_checkpoint_that_opens_and_a_row_for_each_head(tmp_path) -> None:
    folder = tmp_path / "mine"
    training.main(["--out", str(folder), "--steps", "2"])
    opened, measured = load_checkpoint(str(folder), "cpu"), read_forming(folder)
    assert measured.steps.tolist() == [0, 1, 2]
    assert len(measured.heads) == opened.config.n_decoder_layers * opened.config.n_heads
    assert snapshot_steps(folder) == (0,)
    assert opened.trace("aXaXa").attention(KIND, 1).pattern.shape == (2, 7, 7)
    (folder / FILE).write_text(",".join(COLUMNS) + "\n1,0,0,1,1,1,1,1\n2,0,1,1,1,1,1,1\n")
    with pytest.raises(ValueError, match=FILE):
        read_forming(folder)
    assert read_forming(tmp_path) is None


def test_every_head_that_ends_as_high_is_named(forming) -> None:
    final = forming.prefix_matching[-1]
    assert forming.induction in forming.formed
    named = {forming.heads[one] for one in forming.formed}
    assert named == {place for place, score in zip(forming.heads, final, strict=True) if score > 0.9 * final.max()}
    assert len(named) == 2
