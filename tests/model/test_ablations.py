"""Our own Table 3: each row is one change of the base, a finished run is not repeated, and what is gathered opens."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest

from model import train
from model.checkpoints.store import load_checkpoint
from model.commands import ablations
from model.network.config import TransformerConfig
from tests.model.tiny import SENTENCES, write_pairs

SMALL = (
    "--preset toy --vocab-size 312 --d-model 16 --n-heads 2 --d-ff 16 --n-encoder-layers 1 --n-decoder-layers 1 "
    "--max-len 64 --steps 4 --max-tokens 200 --warmup 2 --evaluate-every 2 --average 1"
)


def test_each_row_is_a_command_that_differs_from_the_base_in_one_choice() -> None:
    def chosen(changes: str) -> dict[str, object]:
        return vars(
            train._parse([*ablations.BASE.split(), *changes.split(), "--train", "t", "--dev", "d", "--out", "o"])
        )

    base = chosen("")
    for row, changes in ablations.ROWS.items():
        changed = [name for name, value in chosen(changes).items() if value != base[name]]
        assert len(changed) == (row != "base"), row
        config = {name: value for name, value in chosen(changes).items() if value is not None}
        TransformerConfig(
            **{field.name: config[field.name] for field in fields(TransformerConfig) if field.name in config}
        )


def test_all_rows_are_trained_once_and_gathered(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(ablations, "BASE", SMALL)
    monkeypatch.setattr(ablations, "STEPS", 4)
    monkeypatch.setattr(ablations, "ROWS", {"base": "", "heads-1": "--n-heads 1"})
    monkeypatch.setattr(ablations, "ProcessPoolExecutor", lambda jobs, _context: ThreadPoolExecutor(jobs))
    runs, shipped = tmp_path / "runs", tmp_path / "studies"
    pairs = write_pairs(tmp_path / "pairs.tsv", SENTENCES * 3)
    command = ["--train", str(pairs), "--dev", str(pairs), "--out", str(runs), "--seeds", "2", "--gather", str(shipped)]
    ablations.main(command)
    table = pd.read_csv(shipped / "ablations.csv")
    assert table[["row", "seed"]].to_numpy().tolist() == [["base", 0], ["base", 1], ["heads-1", 0], ["heads-1", 1]]
    for line in table.itertuples():
        log = pd.read_csv(runs / f"{line.row}-{line.seed}" / "log.csv")
        assert np.isclose(line.perplexity, np.exp(log["dev_loss"].iloc[-1]), rtol=1e-4)
        assert np.isclose(line.bleu, log["dev_bleu"].iloc[-1], rtol=1e-4)
    opened = [load_checkpoint(str(shipped / row), "cpu") for row in ("base", "heads-1")]
    assert [translator.config.n_heads for translator in opened] == [2, 1]
    assert len({(shipped / row / "tokenizer.model").read_bytes() for row in ("base", "heads-1")}) == 1
    monkeypatch.setattr(train, "main", lambda _: pytest.fail("a finished run was repeated"))
    ablations.main(command)
    assert pd.read_csv(shipped / "ablations.csv").equals(table)
