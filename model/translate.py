"""Translate standard input, a sentence a line: python -m model.translate --checkpoint NAME < in.txt > out.txt."""

import argparse
import re
import sys

from model.checkpoints.store import DEFAULT_CHECKPOINT, load_checkpoint


def main(arguments: list[str] | None = None) -> None:
    """One translation a line, in the order of the input; a blank line stays blank."""
    parser = argparse.ArgumentParser(prog="python -m model.translate", description="Translate a sentence a line.")
    parser.add_argument("--checkpoint", default=DEFAULT_CHECKPOINT)
    parser.add_argument("--beam-size", type=int, default=4)
    parser.add_argument("--device", default="auto")
    args = parser.parse_args(arguments)
    lines = [line.rstrip("\r\n") for line in sys.stdin]
    for translation in load_checkpoint(args.checkpoint, args.device).translate(lines, args.beam_size):
        print(one_line(translation))


def one_line(text: str) -> str:
    """A model can write a line break; where each line is a sentence, it becomes a space."""
    return re.sub(r"[\r\n]+", " ", text)


if __name__ == "__main__":
    main()
