"""The logs of several runs in one table."""

from pathlib import Path

import pandas as pd

from model.checkpoints.store import save_checkpoint
from model.checkpoints.translator import Translator
from model.commands import curves


def test_the_table_has_every_row_of_every_log_with_the_runs_name_size_and_tokens(
    translator: Translator, tmp_path: Path
) -> None:
    for name, speed in (("a", 100.0), ("b", 200.0)):
        save_checkpoint(
            tmp_path / name, translator.model, translator.tokenizer, dict(translator.model.named_parameters())
        )
        log = {"step": [1, 2], "hours": [0.5, 1.0], "tokens_per_second": [speed, speed], "dev_loss": [5.0, 4.0]}
        pd.DataFrame(log).to_csv(tmp_path / name / "log.csv", index=False)
    for _ in range(2):  # into a new folder, then into one that is there
        curves.main([str(tmp_path / "b"), str(tmp_path / "a"), "--out", str(tmp_path / "out" / "curves.csv")])
    table = pd.read_csv(tmp_path / "out" / "curves.csv")
    assert table["run"].tolist() == ["b", "b", "a", "a"]
    assert table["tokens"].tolist() == [360_000, 720_000, 180_000, 360_000]
    assert table["dev_loss"].tolist() == [5.0, 4.0] * 2
    parts = translator.parameters_by_part()
    assert set(table["parameters"]) == {sum(parts.values())}
    assert set(table["embedding_parameters"]) == {parts["embeddings"] + parts["output"]}
