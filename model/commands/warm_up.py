"""Why warm-up: the letters task with it, without it at the same peak, and with equation 3 from its highest rate on.

`python -m model.commands.warm_up --out checkpoints/studies/warm_up.csv` trains each way with three seeds.
"""

from collections.abc import Collection, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
import torch

from model.analysis.inside.warm_up import update_sizes
from model.background.studies import LETTERS_WARMUP
from model.command_line import command_parser, run_command, whole_number
from model.train import new_trainer
from model.training import reversal_task
from model.training.small import write_table
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
"""steps of which the update is measured besides those that are evaluated: evenly spaced on a logarithmic axis"""


def main(arguments: list[str] | None = None) -> None:
    """Train every way with seed 0, then with seed 1, and so on; write the table after each run."""
    parser = command_parser("commands.warm_up", "With and without warm-up.")
    parser.add_argument("--out", type=Path, required=True, help="the CSV to write")
    parser.add_argument("--seeds", type=whole_number(1), default=len(SEEDS), help="runs of each way (default: 3)")
    parser.add_argument(
        "--jobs", type=whole_number(1), default=1, help="runs at the same time, each in one thread (default: 1)"
    )
    parser.add_argument("--recipe", default=RECIPE, help="options of model.train (default: %(default)s)")
    args = parser.parse_args(arguments)
    with TemporaryDirectory() as name:
        folder = Path(name)
        reversal_task.main(["--out", str(folder)])
        runs = [(folder, way, seed, args.recipe) for seed in range(args.seeds) for way in WAYS]
        tables: list[pd.DataFrame] = []
        with ProcessPoolExecutor(args.jobs, get_context("spawn")) if args.jobs > 1 else nullcontext() as pool:
            for table in (pool.map if pool else map)(train, *zip(*runs, strict=True)):
                tables.append(table)
                write_table(args.out, pd.concat(tables))


def train(folder: Path, way: str, seed: int, recipe: str) -> pd.DataFrame:
    """Train one way on the letters in `folder`; its log, with the updates at the steps that were measured."""
    torch.set_num_threads(1)  # for models this small more threads are slower
    out = folder / f"{way}-{seed}"
    files = ["--train", f"{folder / 'train.tsv'}", "--dev", f"{folder / 'dev.tsv'}", "--out", str(out)]
    trainer = new_trainer([*recipe.split(), *WAYS[way].split(), *files, "--seed", str(seed)])
    table = pd.DataFrame(measure_updates(trainer, MEASURED))
    log = pd.read_csv(out / "log.csv")[["step", "train_loss", "dev_loss", "dev_exact"]]
    named = pd.DataFrame({"way": way, "seed": seed}, index=[0])
    return named.merge(table.merge(log, on="step", how="outer"), how="cross")


def measure_updates(trainer: Trainer, steps: Collection[int]) -> Iterator[dict[str, float]]:
    """Train to the end; after these steps and after each evaluation yield the rate, and `update_sizes`."""
    every = trainer.options.evaluate_every
    for progress in trainer.run():
        if progress.step in steps or progress.step % every == 0:
            rate = trainer.optimizers[0].param_groups[0]["lr"]
            yield {"step": progress.step, "rate": rate} | update_sizes(trainer.model, trainer.optimizers[0])


if __name__ == "__main__":
    run_command(main)
