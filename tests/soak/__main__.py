"""make soak: many sessions for minutes, sessions that close, and faults. Exit code 1 if anything failed."""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from model.checkpoints.store import DEFAULT_CHECKPOINT, checkpoint_path
from tests.soak import classroom, closed, faults, hostile, load, replicas, visits


def main() -> None:
    """Run the parts that were asked for, all by default."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument(
        "parts", nargs="*", help="hostile, load, class, replicas, visits, closed, faults; all of them if none is named"
    )
    parser.add_argument("--minutes", type=float, default=5.0, help="how long the sessions work")
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--visitors", type=int, default=30, help="of the class")
    parser.add_argument("--replicas", type=int, default=1, help="processes that serve the class, behind nginx")
    parser.add_argument(
        "--training", action="store_true", help="beside the class one trains and one teaches a correction"
    )
    parser.add_argument("--other", type=Path, help="a checkout of another version to compare the class with")
    args = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copied = folder / DEFAULT_CHECKPOINT
        shutil.copytree(checkpoint_path(DEFAULT_CHECKPOINT), copied, ignore=shutil.ignore_patterns("snapshots"))
        parts: dict[str, Callable[[], object]] = {
            "hostile": hostile.main,
            "load": lambda: load.main(folder, args.sessions, args.minutes),
            "class": lambda: classroom.main(
                folder, args.visitors, min(args.minutes, 3.0), args.replicas, args.other, args.training
            ),
            "replicas": lambda: replicas.main(folder),
            "visits": lambda: visits.main(folder),
            "closed": lambda: closed.main(folder),
            "faults": lambda: faults.main(folder, copied),
        }
        if unknown := set(args.parts) - set(parts):
            parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(parts)}")
        for part in args.parts or parts:
            problems = parts[part]()
            for problem in list(problems or [])[:20]:
                print(f"  FAILED {part}: {problem}")
            failed = failed or bool(problems)
    print("FAILED" if failed else "all of it holds")
    sys.exit(failed)


if __name__ == "__main__":
    main()
