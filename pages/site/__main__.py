"""Builds the static pages: python -m pages.site OUT [--checkpoint en-de everyday-lm] [--app https://...]."""

import argparse
import shlex
import sys
from pathlib import Path

from model.command_line import run_command
from pages.site import SHIPPED
from pages.site.build import build


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m pages.site", description="Build the static page.")
    parser.add_argument("out", type=Path, help="a folder; index.html and attention-explorer.html are written into it")
    parser.add_argument(
        "--checkpoint",
        nargs="+",
        default=tuple(SHIPPED),
        metavar="NAME",
        help="names or folders: a translator, a language model, or one of each, the first page's first "
        f"(default: {' '.join(SHIPPED)})",
    )
    parser.add_argument("--app", default="", help="address of the full app; without it the page says how to start one")
    options = parser.parse_args()
    sys.stdout.write(f"Building the pages of {' and '.join(options.checkpoint)} ...\n")
    sys.stdout.flush()
    build(options.out, options.checkpoint, options.app and f"{options.app.rstrip('/')}/")
    sys.stdout.write(describe(options.out))


def describe(out: Path) -> str:
    """What was made, how large each file is, and how to look at it."""
    files = sorted(path for path in out.iterdir() if path.is_file())
    sizes = "".join(f"{path.stat().st_size / 1e6:8.1f} MB  {path.name}\n" for path in files)
    return (
        f"{sizes}What is called attention-explorer opens from a disk. The rest is for a web server; here:\n"
        f"python -m http.server --bind 127.0.0.1 --directory {shlex.quote(str(out))}   # then http://localhost:8000\n"
    )


if __name__ == "__main__":
    run_command(main)
