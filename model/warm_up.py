"""Why warm-up: the letters task with it, without it at the same peak, and with equation 3 from its highest rate on.

`python -m model.warm_up --out checkpoints/studies/warm_up.csv` trains each way with three seeds.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import torch

from model.background.studies import LETTERS_WARMUP
from model.checkpoints.files import atomic_write
from model.command_line import run_command, whole_number
from model.train import new_trainer
from model.training import reversal_task
from model.training.trainer import Trainer

SEEDS = (0, 1, 2)
RECIPE = (
    f"--preset toy --steps 900 --warmup {LETTERS_WARMUP} --lr-factor 0.7 --cooldown 400 --max-tokens 1500 "
    "--evaluate-every 50 --average 1"
)
"""that of docs/training.md, shorter"""
WAYS = {"warm-up": "", "same peak": "--no-rise", "highest rate": "--warmup 0"}
"""name -> what its command has other than RECIPE"""
MEASURED = sorted({round(10 ** (power / 6)) for power in range(25)})
"""steps of which the update is measured: evenly spaced on a logarithmic axis, from 1 on"""


def main(arguments: list[str] | None = None) -> None:
    """Train every way with seed 0, then with seed 1, and so on; write the table after each run."""
    parser = argparse.ArgumentParser(prog="python -m model.warm_up", description="With and without warm-up.")
    parser.add_argument("--out", type=Path, required=True, help="the CSV to write")
    parser.add_argument("--seeds", type=whole_number(1), default=len(SEEDS), help="runs of each way (default: 3)")
    parser.add_argument("--recipe", default=RECIPE, help="options of model.train (default: %(default)s)")
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)  # for models this small more threads are slower
    tables: list[pd.DataFrame] = []
    with TemporaryDirectory() as folder:
        data = Path(folder) / "letters"
        reversal_task.main(["--out", str(data)])
        for seed in range(args.seeds):
            for way, changes in WAYS.items():
                out = Path(folder) / f"{way}-{seed}"
                files = ["--train", f"{data / 'train.tsv'}", "--dev", f"{data / 'dev.tsv'}", "--out", str(out)]
                trainer = new_trainer([*args.recipe.split(), *changes.split(), *files, "--seed", str(seed)])
                table = pd.DataFrame(measure_updates(trainer))
                log = pd.read_csv(out / "log.csv")[["step", "train_loss", "dev_loss", "dev_exact"]]
                tables.append(table.merge(log, on="step", how="outer").assign(way=way, seed=seed))
                with atomic_write(args.out) as path:
                    columns = ["way", "seed", "step", "rate", "update", "train_loss", "dev_loss", "dev_exact"]
                    pd.concat(tables)[columns].to_csv(path, index=False, float_format="%.5g")


def measure_updates(trainer: Trainer) -> Iterator[dict[str, float]]:
    """Train to the end; at some steps yield the rate and the mean size of a weight's update, in units of the rate.

    Adam divides each gradient's mean by its root mean square, so the size is at most about 1: it is 1 where all
    gradients so far agree, and small where they cancel.
    """
    last = trainer.options.steps
    steps = [step for step in MEASURED if step <= last]
    before = _weights(trainer) if 1 in steps else None
    for progress in trainer.run():
        if progress.step in steps:
            rate = trainer.optimizers[0].param_groups[0]["lr"]
            size = (_weights(trainer) - before).abs().mean().item()
            yield {"step": progress.step, "rate": rate, "update": size / rate if rate else float("nan")}
        before = _weights(trainer) if progress.step + 1 in steps else None


def _weights(trainer: Trainer) -> torch.Tensor:
    return torch.cat([each.detach().flatten() for each in trainer.model.parameters()])


if __name__ == "__main__":
    run_command(main)
