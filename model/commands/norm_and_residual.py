"""Are norm and residual both needed? The letters task without either, and in stacks of 2, 6 and 12 layers.

`python -m model.commands.norm_and_residual --out runs/norms --gather checkpoints/studies` trains each way once. A run
that is finished is skipped, so the same command goes on after a stop; `--runs pre-12 pre-12-no-warm-up` trains those
alone.
"""

import copy
import math
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
import torch

from model.background.studies import DEPTHS, GRADIENTS, LETTERS_STEPS, NORMS, PLACEMENTS, WITHOUT, letters_run
from model.command_line import command_parser, run_command
from model.commands.ablations import SHIPPED
from model.train import new_trainer
from model.training import reversal_task
from model.training.data import Example, Text
from model.training.loss import label_smoothed_loss
from model.training.small import write_table
from model.training.trainer import Trainer, TrainingDiverged

RECIPE = (
    f"--preset toy --d-model 32 --d-ff 64 --steps {LETTERS_STEPS} --warmup 100 --lr-factor 0.5 --cooldown 100 "
    "--max-tokens 600 --evaluate-every 100 --average 1"
)
LONGEST = 5
"""letters of a text"""
CHANGES = {
    "no-norm": "--norm-function none",
    "no-residual": "--no-residual",
    "batch-norm": "--norm-function batch_norm",
}
RUNS = {name: CHANGES[name] for name in WITHOUT} | {
    letters_run(norm, depth, rises): (
        f"--norm {norm} --n-encoder-layers {depth} --n-decoder-layers {depth} {'' if rises else '--no-rise'}"
    )
    for depth in DEPTHS
    for norm in PLACEMENTS
    for rises in (True, False)
}
"""run -> what its command has other than RECIPE"""
LOGGED = ["step", "learning_rate", "train_loss", "dev_loss", "dev_exact"]


def main(arguments: list[str] | None = None) -> None:
    """Train every way that is not finished, and gather after each."""
    parser = command_parser("commands.norm_and_residual", "Without norm, without residual, in deep stacks.")
    parser.add_argument("--out", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--gather", type=Path, required=True, metavar="FOLDER", help="tables and weights go there")
    parser.add_argument("--runs", nargs="+", choices=RUNS, default=[*RUNS], metavar="RUN", help="which (default: all)")
    parser.add_argument("--recipe", default=RECIPE, help="options of model.train (default: %(default)s)")
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)  # for models this small more threads are slower
    data = args.out / "letters"
    reversal_task.main(["--out", str(data), "--longest", str(LONGEST)])
    for name in args.runs:
        folder = args.out / name
        if not (folder / GRADIENTS).exists():
            shutil.rmtree(folder, ignore_errors=True)
            files = ["--train", f"{data / 'train.tsv'}", "--dev", f"{data / 'dev.tsv'}", "--out", str(folder)]
            train(new_trainer([*args.recipe.split(), *RUNS[name].split(), *files]), Text.read(files[3]).examples)
        gather(args.out, args.gather)


def train(trainer: Trainer, examples: Sequence[Example]) -> None:
    """Train to the end, or until it diverges; the gradients before training are written when that is over."""
    gradients, diverged = gradients_by_layer(trainer, examples), None
    try:
        for _ in trainer.run():
            pass
    except TrainingDiverged:
        diverged = trainer.progress.step + 1
    write_table(trainer.folder / GRADIENTS, gradients.assign(diverged=diverged))


def gradients_by_layer(trainer: Trainer, examples: Sequence[Example]) -> pd.DataFrame:
    """Length of the gradient of all weights of each layer, for the longest of the examples, which need no padding."""
    model, task = copy.deepcopy(trainer.model).train(), trainer.task
    samples = task.encode(trainer.tokenizer, examples, model.config.max_len)
    longest = max(map(task.shape, samples))
    batch = task.batch([each for each in samples if task.shape(each) == longest], model.config, trainer.device, "")
    label_smoothed_loss(model(*batch.inputs), batch.targets, trainer.options.label_smoothing).div(
        batch.targets.numel()
    ).backward()
    rows = []
    for name, stack in model.stacks.items():
        for layer, block in enumerate(stack.layers):
            squares = sum(float(each.grad.double().square().sum()) for each in block.parameters())
            rows.append({"stack": name, "layer": layer, "gradient": math.sqrt(squares)})
    return pd.DataFrame(rows)


def gather(runs: Path, folder: Path) -> None:
    """Write the logs and the gradients of all finished runs as one table each, and copy the weights.

    Rows of runs that are not in `runs` stay as they are.
    """
    folder.mkdir(parents=True, exist_ok=True)
    finished = [name for name in RUNS if (runs / name / GRADIENTS).exists()]
    logged = [name for name in finished if (runs / name / "log.csv").exists()]
    for name in logged:
        (folder / name).mkdir(exist_ok=True)
        for file in SHIPPED:
            shutil.copy(runs / name / file, folder / name)
    _gather_table(folder / NORMS, finished, {name: pd.read_csv(runs / name / "log.csv")[LOGGED] for name in logged})
    _gather_table(folder / GRADIENTS, finished, {name: pd.read_csv(runs / name / GRADIENTS) for name in finished})


def _gather_table(path: Path, finished: Sequence[str], tables: Mapping[str, pd.DataFrame]) -> None:
    """Replace the rows of the finished runs in a table of all runs, and keep the others; in the order of RUNS."""
    earlier = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=["run"])
    rows = {str(name): own for name, own in earlier.groupby("run") if name not in finished}
    rows |= {name: table.assign(run=name) for name, table in tables.items()}
    if rows:
        write_table(path, pd.concat([rows[name] for name in RUNS if name in rows]))


if __name__ == "__main__":
    run_command(main)
