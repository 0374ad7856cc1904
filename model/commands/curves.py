"""Gather the logs of several runs in one table.

python -m model.commands.curves --out checkpoints/studies/scaling.csv RUN...
"""

from pathlib import Path

import pandas as pd

from model.checkpoints.store import load_checkpoint
from model.command_line import command_parser, run_command
from model.training.small import write_table


def main(arguments: list[str] | None = None) -> None:
    """Write the table; the folders of the runs are named as the runs should be."""
    parser = command_parser("commands.curves", "Gather logs of runs.")
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folder of a run")
    parser.add_argument("--out", type=Path, required=True, help="the CSV to write")
    args = parser.parse_args(arguments)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    write_table(args.out, pd.concat(map(read_curve, args.runs)), digits=6)


def read_curve(run: Path) -> pd.DataFrame:
    """The log of a run with columns for its name, its size, and the tokens that it had read at each evaluation."""
    parts = load_checkpoint(str(run), "cpu").parameters_by_part()
    log = pd.read_csv(run / "log.csv")
    log.insert(0, "run", run.name)
    log.insert(1, "parameters", sum(parts.values()))
    log.insert(2, "embedding_parameters", parts["embeddings"] + parts["output"])
    if "tokens" not in log:  # Logs did not always count them.
        log.insert(4, "tokens", (log["hours"] * 3600 * log["tokens_per_second"]).round(-3).astype(int))
    return log


if __name__ == "__main__":
    run_command(main)
