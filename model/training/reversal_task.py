"""A task small enough to learn in two minutes: letters in, the same letters in reverse order out.

`python -m model.training.reversal_task --out FOLDER` writes its data.
"""

import random
from pathlib import Path
from string import ascii_lowercase

from model.command_line import command_parser, run_command, whole_number

LONGEST = 8
"""maximum letters per line"""
TRAIN_LINES, DEV_LINES = 20_000, 200


def main(arguments: list[str] | None = None) -> None:
    """Write train.tsv and dev.tsv, which have no line in common."""
    parser = command_parser("training.reversal_task", "Letters and their reverse.")
    parser.add_argument("--out", type=Path, required=True, help="folder for train.tsv and dev.tsv")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--longest", type=whole_number(4), default=LONGEST, help="letters of a line (default: 8)")
    args = parser.parse_args(arguments)
    lines = reversals(TRAIN_LINES + DEV_LINES, args.seed, args.longest)
    args.out.mkdir(parents=True, exist_ok=True)
    for name, part in (("train.tsv", lines[DEV_LINES:]), ("dev.tsv", lines[:DEV_LINES])):
        (args.out / name).write_text("".join(f"{source}\t{target}\n" for source, target in part), encoding="utf-8")


def reversals(count: int, seed: int, longest: int = LONGEST) -> list[tuple[str, str]]:
    """`count` distinct pairs such as ("c a t", "t a c"), of 3 letters or more."""
    rng = random.Random(seed)
    found: dict[str, str] = {}
    while len(found) < count:
        letters = rng.choices(ascii_lowercase, k=rng.randint(3, longest))
        found[" ".join(letters)] = " ".join(reversed(letters))
    return list(found.items())


if __name__ == "__main__":
    run_command(main)
