"""How far weights move in a training, in units of the learning rate."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from model import warm_up
from model.analysis.inside.warm_up import moves_between_snapshots
from model.checkpoints.store import load_checkpoint, save_weights
from model.training.schedule import noam


def test_the_net_move_is_that_of_the_saved_weights(saved_checkpoints: Path, tmp_path: Path, monkeypatch) -> None:
    shutil.copytree(saved_checkpoints, tmp_path / "checkpoints")
    monkeypatch.setenv("ATTENTION_EXPLORER_CHECKPOINTS", str(tmp_path / "checkpoints"))
    opened = load_checkpoint("en-de", "cpu")
    folder = tmp_path / "checkpoints" / "en-de" / "snapshots"
    folder.mkdir()
    weights = {path: each.clone() for path, each in opened.model.named_parameters()}
    for step, offset in ((0, 0.0), (4, 0.5), (6, 0.25)):
        saved = {path: torch.full_like(each, offset) for path, each in weights.items()}
        save_weights(folder / f"step-{step:06}.safetensors", saved)
    moves = moves_between_snapshots(opened, (0, 4, 6), 5, 2.0)
    assert moves.ends.tolist() == [[0, 4], [4, 6]]
    assert np.allclose(moves.moved, [0.5, 0.25])
    assert np.allclose(moves.rates, [sum(noam(step, 32, 5, 2.0) for step in steps) for steps in ((1, 2, 3, 4), (5, 6))])
    # Half precision has 10 bits behind the first one.
    assert np.allclose(moves.rounding, [2.0**-11, 2.0**-12])


RECIPE = (
    "--preset toy --d-model 16 --n-heads 2 --d-ff 16 --n-encoder-layers 1 --n-decoder-layers 1 --steps 4 --warmup 3 "
    "--max-tokens 200 --evaluate-every 4 --average 1"
)


def test_the_study_compares_the_same_peak(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(warm_up.reversal_task, "TRAIN_LINES", 400)
    monkeypatch.setattr(warm_up.reversal_task, "DEV_LINES", 5)
    threads = torch.get_num_threads()
    warm_up.main(["--out", str(tmp_path / "warm_up.csv"), "--seeds", "1", "--recipe", RECIPE])
    torch.set_num_threads(threads)
    table = pd.read_csv(tmp_path / "warm_up.csv")
    rates = {way: rows.set_index("step")["rate"] for way, rows in table.groupby("way")}
    assert set(rates) == set(warm_up.WAYS)
    peak = noam(3, 16, 3)
    assert rates["warm-up"].max() == pytest.approx(peak, rel=1e-4)
    assert rates["same peak"][[1, 2, 3]].tolist() == pytest.approx([peak] * 3, rel=1e-4)
    assert rates["highest rate"][1] == pytest.approx(peak * 3**0.5, rel=1e-4)
    first = table[table["step"] == 1].set_index("way")["update"]
    # All three begin with the same weights and the same batch, and Adam's first step is as large as the rate.
    assert first.to_numpy() == pytest.approx([first["warm-up"]] * 3, rel=0.02)
    assert 0.1 < first["warm-up"] <= 1.01
    assert table.dropna(subset="dev_exact")["step"].unique().tolist() == [4]
