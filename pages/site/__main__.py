"""Builds the static page: python -m pages.site OUT [--checkpoint en-de] [--app https://...]."""

import argparse
from pathlib import Path

from model.checkpoints.store import DEFAULT_CHECKPOINT
from model.command_line import run_command
from pages.site.build import build


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m pages.site", description="Build the static page.")
    parser.add_argument("out", type=Path, help="a folder; index.html and attention-explorer.html are written into it")
    parser.add_argument("--checkpoint", default=DEFAULT_CHECKPOINT, help="name or folder (default: %(default)s)")
    parser.add_argument(
        "--app",
        default="",
        help="address of the full app; without it the page says how to start one",
    )
    options = parser.parse_args()
    build(options.out, options.checkpoint, options.app and f"{options.app.rstrip('/')}/")


if __name__ == "__main__":
    run_command(main)
