"""Translate standard input, one sentence per line: python -m model.translate --checkpoint NAME < in.txt > out.txt."""

import re
import sys

from model.checkpoints.store import DEFAULT_CHECKPOINT, load_translator
from model.command_line import command_parser, run_command, whole_number
from model.training.data import decode_lines


def main(arguments: list[str] | None = None) -> None:
    """Print one translation per line, in input order; a blank line stays blank.

    Raises:
        ValueError: a line is not UTF-8, or the checkpoint cannot be opened or has no such language.
    """
    parser = command_parser("translate", "Translate standard input, one sentence per line.")
    parser.add_argument("--checkpoint", default=DEFAULT_CHECKPOINT, help="name or folder (default: %(default)s)")
    parser.add_argument("--beam-size", type=whole_number(1), default=4, help="1 is greedy decoding (default: 4)")
    own = "of a translator of many languages: the code of the one that %s (default: the tokenizer's own)"
    parser.add_argument("--source-language", metavar="CODE", help=own % "the text is in")
    parser.add_argument("--target-language", metavar="CODE", help=own % "is written")
    parser.add_argument("--device", default="auto", help="cpu, cuda, cuda:1, ... (default: auto)")
    args = parser.parse_args(arguments)
    translator = load_translator(args.checkpoint, args.device)
    translator = translator.in_languages(args.source_language, args.target_language)
    # Where standard input is no file, as in a notebook, its lines are text already.
    lines = decode_lines(getattr(sys.stdin, "buffer", map(str.encode, sys.stdin)), "standard input")
    for translation in translator.translate(lines, args.beam_size):
        print(join_lines(translation))


def join_lines(text: str) -> str:
    """Replace whatever ends a line to some program, which a model can generate, by spaces."""
    return re.sub(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+", " ", text)


if __name__ == "__main__":
    run_command(main)
