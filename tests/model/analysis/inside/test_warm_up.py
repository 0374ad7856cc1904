"""How far weights move in a training, in units of the learning rate."""

import numpy as np
import pandas as pd
import pytest
import torch

from model.analysis.inside.warm_up import WEIGHT_KINDS, moves_between_snapshots, update_sizes
from model.checkpoints.store import load_checkpoint, save_weights
from model.commands import warm_up
from model.train import new_trainer
from model.training import reversal_task
from model.training.schedule import noam


def test_the_net_move_is_that_of_the_saved_weights(folder) -> None:
    opened = load_checkpoint(folder.name, "cpu")
    (folder / "snapshots").mkdir()
    weights = {path: each.clone() for path, each in opened.model.named_parameters()}
    for step, offset in ((0, 0.0), (4, 0.5), (6, 0.25)):
        saved = {path: torch.full_like(each, offset) for path, each in weights.items()}
        save_weights(folder / "snapshots" / f"step-{step:06}.safetensors", saved)
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


@pytest.mark.usefixtures("few_letters")
def test_the_study_compares_the_same_peak(tmp_path) -> None:
    warm_up.main(["--out", str(tmp_path / "warm_up.csv"), "--seeds", "1", "--recipe", RECIPE])
    table = pd.read_csv(tmp_path / "warm_up.csv")
    rates = {way: rows.set_index("step")["rate"] for way, rows in table.groupby("way")}
    assert set(rates) == set(warm_up.WAYS)
    peak = noam(3, 16, 3)
    assert rates["warm-up"].max() == pytest.approx(peak, rel=1e-4)
    assert rates["same peak"][[1, 2, 3]].tolist() == pytest.approx([peak] * 3, rel=1e-4)
    assert rates["highest rate"][1] == pytest.approx(peak * 3**0.5, rel=1e-4)
    assert set(table["step"]) == {1, 2, 3, 4}
    first = table[table["step"] == 1].set_index("way")
    # All three begin with the same weights and the same batch, and Adam's first step is as large as the rate.
    for kind in WEIGHT_KINDS:
        updates = first[f"update_{kind}"]
        assert updates.to_numpy() == pytest.approx([updates["warm-up"]] * 3, rel=0.02)
        assert 0.1 < updates["warm-up"] <= 1.0
    assert table.dropna(subset="dev_exact")["step"].unique().tolist() == [4]
    parts = [name for name in WEIGHT_KINDS if name != "all"]
    between = table[[f"update_{name}" for name in parts]]
    assert (between.min(axis=1) <= table["update_all"]).all()
    assert (table["update_all"] <= between.max(axis=1)).all()


@pytest.mark.usefixtures("few_letters")
def test_the_update_that_the_moments_give_is_what_the_weights_did(tmp_path) -> None:
    reversal_task.main(["--out", str(tmp_path)])
    files = ["--train", str(tmp_path / "train.tsv"), "--dev", str(tmp_path / "dev.tsv"), "--out", str(tmp_path / "run")]
    trainer = new_trainer([*RECIPE.split(), *files])
    weights = dict(trainer.model.named_parameters())
    before = {path: each.detach().clone() for path, each in weights.items()}
    for _ in trainer.run():
        rate = trainer.optimizers[0].param_groups[0]["lr"]
        sizes = update_sizes(trainer.model, trainer.optimizers[0])
        moved = {path: (each.detach() - before[path]) / rate for path, each in weights.items()}
        for kind, parts in WEIGHT_KINDS.items():
            of_kind = [path for path in weights if any(part in path for part in parts)]
            for what, tensors in (("update", moved), ("weights", weights)):
                together = torch.cat([tensors[path].detach().double().flatten() for path in of_kind])
                # Weights in single precision, of which an update of 0.01 changes the last five digits.
                assert sizes[f"{what}_{kind}"] == pytest.approx(together.square().mean().sqrt().item(), rel=1e-3)
        before = {path: each.detach().clone() for path, each in weights.items()}
    kinds = [
        kind
        for kind, parts in WEIGHT_KINDS.items()
        if kind != "all"
        for path in weights
        if any(part in path for part in parts)
    ]
    assert len(kinds) == len(weights), "each weight is of one kind"
