"""Everything that is measured, part by part: python -m tests.bench [--only views,peers] [--checkpoint NAME]."""

import argparse
import os
import platform
import time
from collections.abc import Callable, Iterable

from model.checkpoints.store import DEFAULT_CHECKPOINT
from tests.bench import coldstart, growth, peers, recording, speed, views, whole_pages
from tests.bench.speed import print_lines
from tests.bench.table import Row, markdown, text

PARTS: dict[str, tuple[str, Callable[[str], Iterable[Row]]]] = {
    "views": ("From a slider's move to the painted picture", views.views),
    "pages": ("From a move of the temperature to the last change of a whole page", whole_pages.pages),
    "peers": ("Beside BertViz, the same weights", peers.peers),
    "recording": ("Recording every activation, beside the same run unrecorded", recording.recording),
    "growth": ("Growth with the length of the sentence", growth.growth),
    "coldstart": ("From the start of the server to the first picture", coldstart.coldstart),
}


def main(arguments: list[str] | None = None) -> None:
    """Measure each part, print its table, and all tables as Markdown at the end."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__, add_help=False)
    parser.add_argument("--help", action="store_true")
    parser.add_argument("--only", default=",".join(["speed", *PARTS]), help="parts, with commas between them")
    parser.add_argument("--checkpoint", default=DEFAULT_CHECKPOINT)
    args, rest = parser.parse_known_args(arguments)
    if args.help:
        parser.print_help()
        speed.main(["--help"])
    chosen = args.only.split(",")
    if unknown := set(chosen) - {"speed", *PARTS}:
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are speed, {', '.join(PARTS)}")
    if "speed" in chosen:
        speed.main(["--checkpoint", args.checkpoint, *rest])
    elif rest:
        parser.error(f"only the part speed knows {' '.join(rest)}")
    tables = {part: _measured(part, args.checkpoint) for part in PARTS if part in chosen}
    for part, rows in tables.items():
        print_lines([f"### {PARTS[part][0]}", "", *markdown(rows), ""])


def _measured(part: str, checkpoint: str) -> list[Row]:
    title, measure = PARTS[part]
    started = time.perf_counter()
    rows = list(measure(checkpoint))
    load = " ".join(f"{load:.1f}" for load in os.getloadavg())
    machine = f"{os.cpu_count()} processors, {platform.machine()}, load {load}"
    print_lines(["", *text(f"{title} ({machine}; {time.perf_counter() - started:.0f} s)", rows)])
    return rows


if __name__ == "__main__":
    main()
