"""Translate standard input, one sentence per line: python -m model.translate --checkpoint NAME < in.txt > out.txt."""

import argparse
import re
import sys

from model.checkpoints.store import DEFAULT_CHECKPOINT, load_translator


def main(arguments: list[str] | None = None) -> None:
    """Print one translation per line, in input order; a blank line stays blank."""
    parser = argparse.ArgumentParser(
        prog="python -m model.translate", description="Translate standard input, one sentence per line."
    )
    parser.add_argument("--checkpoint", default=DEFAULT_CHECKPOINT, help="name or folder (default: %(default)s)")
    parser.add_argument("--beam-size", type=int, default=4, help="1 is greedy decoding (default: 4)")
    parser.add_argument("--device", default="auto", help="cpu, cuda, cuda:1, ... (default: auto)")
    args = parser.parse_args(arguments)
    lines = [line.rstrip("\r\n") for line in sys.stdin]
    for translation in load_translator(args.checkpoint, args.device).translate(lines, args.beam_size):
        print(join_lines(translation))


def join_lines(text: str) -> str:
    """Replace line breaks, which a model can generate, by spaces."""
    return re.sub(r"[\r\n]+", " ", text)


if __name__ == "__main__":
    main()
