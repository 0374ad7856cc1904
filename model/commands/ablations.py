"""Our own Table 3: train small translators that differ in one choice, and gather what each reached.

python -m model.commands.ablations --train FILE --dev FILE --out FOLDER --gather checkpoints/studies \
    [--seeds 3] [--jobs 2]

A run that is finished is skipped and one that was stopped is continued, so the same command goes on after any stop.
"""

import math
import shutil
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import pandas as pd
import torch

from model import train
from model.background.studies import ROWS as STUDY_ROWS
from model.background.studies import WARMUP
from model.checkpoints.store import load_checkpoint
from model.command_line import command_parser, run_command, whole_number
from model.training.small import write_table

STEPS = 1200
BASE = (
    "--preset toy --vocab-size 2000 --d-model 64 --n-heads 4 --d-ff 128 --n-encoder-layers 2 --n-decoder-layers 2 "
    f"--max-len 64 --dropout 0.1 --label-smoothing 0.1 --steps {STEPS} --max-tokens 2048 --warmup {WARMUP} --cooldown "
    "500 --evaluate-every 300 --average 1 --precision bfloat16"
)
ROWS = {name: row.options for name, row in STUDY_ROWS.items()}
"""row -> what its command has other than `BASE`"""
SHIPPED = ("config.json", "tokenizer.model", "model.safetensors", "log.csv")


def main(arguments: list[str] | None = None) -> None:
    """Train every row with seed 0, then every row with seed 1, and so on; gather after each run."""
    parser = command_parser("commands.ablations", "Train our own Table 3.")
    parser.add_argument("--train", required=True, metavar="FILE", help="lines of source<TAB>target")
    parser.add_argument("--dev", required=True, metavar="FILE", help="the same; what every run is scored on")
    parser.add_argument("--out", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--seeds", type=whole_number(1), default=3, help="runs of each row (default: 3)")
    parser.add_argument(
        "--jobs", type=whole_number(1), default=1, help="runs at the same time, each in one thread (default: 1)"
    )
    parser.add_argument(
        "--gather", type=Path, required=True, metavar="FOLDER", help="ablations.csv and seed 0's weights go there"
    )
    args = parser.parse_args(arguments)
    vocabulary = args.out / "base-0" / "tokenizer.model"
    runs = []
    for seed in range(args.seeds):
        for row, changes in ROWS.items():
            folder = args.out / f"{row}-{seed}"
            files = ["--train", args.train, "--dev", args.dev, "--out", str(folder)]
            command = [*BASE.split(), *changes.split(), *files, "--seed", str(seed), "--resume"]
            if not _finished(folder):
                runs.append((folder, vocabulary, command))
    if runs and runs[0][0] == vocabulary.parent:
        _train(*runs.pop(0))  # learns the vocabulary, which all runs share
    gather(args.out, args.gather)
    with ProcessPoolExecutor(args.jobs, get_context("spawn")) as pool:
        for finished in as_completed([pool.submit(_train, *run) for run in runs]):
            finished.result()
            gather(args.out, args.gather)


def _train(folder: Path, vocabulary: Path, command: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if folder != vocabulary.parent:
        shutil.copy(vocabulary, folder)
    torch.set_num_threads(1)
    train.main(command)


def gather(runs: Path, folder: Path) -> None:
    """Write ablations.csv, a row for each finished run under `runs`, and copy the weights of seed 0."""
    folder.mkdir(parents=True, exist_ok=True)
    table = []
    for row in ROWS:
        for run in sorted(runs.glob(f"{row}-[0-9]*"), key=lambda run: int(run.name.rpartition("-")[2])):
            seed = run.name.removeprefix(f"{row}-")
            if not (seed.isdigit() and _finished(run)):
                continue
            end = pd.read_csv(run / "log.csv").iloc[-1]
            parameters = sum(load_checkpoint(str(run), "cpu").parameters_by_part().values())
            perplexity, minutes = math.exp(end["dev_loss"]), 60 * end["hours"]
            table.append((row, int(seed), parameters, perplexity, end["dev_bleu"], minutes))
            if seed == "0":
                (folder / row).mkdir(exist_ok=True)
                for name in SHIPPED:
                    shutil.copy(run / name, folder / row)
    columns = ["row", "seed", "parameters", "perplexity", "bleu", "minutes"]
    write_table(folder / "ablations.csv", pd.DataFrame(table, columns=columns))


def _finished(run: Path) -> bool:
    log = run / "log.csv"
    return log.exists() and pd.read_csv(log)["step"].max() >= STEPS


if __name__ == "__main__":
    run_command(main)
