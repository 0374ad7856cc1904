"""The yardstick of the language model: an interpolated, modified Kneser-Ney 5-gram model of the same text and pieces.

    python -m tests.bench.kneser_ney --checkpoint everyday-lm --train FILE... --dev FILE --lmplz PATH/TO/lmplz

KenLM (github.com/kpu/kenlm) estimates and scores it: `cmake -B build && make -C build lmplz query` in its sources. Each
file of --train is read once, whatever weight it had in training.
"""

import argparse
import math
import subprocess
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from model.checkpoints.store import load_checkpoint
from model.checkpoints.tokenizer import Tokenizer
from model.training.data import read_lines
from model.training.tasks import predict_tokens

ORDER = 5


def main(arguments: list[str] | None = None) -> None:
    """Print the bits per byte of both models on --dev, and by how much the checkpoint's are lower."""
    args = read_arguments("python -m tests.bench.kneser_ney", arguments)
    opened, dev = load_checkpoint(args.checkpoint), read_lines(args.dev)
    ours = predict_tokens(opened.model, opened.tokenizer, dev, opened.device).bits_per_byte(dev)
    lines = (line for name in args.train for line in read_lines(name))
    theirs = bits_per_byte(opened.tokenizer, lines, dev, args.lmplz)
    print(f"Kneser-Ney {ORDER}-gram: {theirs:.4f} bits per byte")
    print(f"{args.checkpoint}: {ours:.4f} bits per byte, {1 - ours / theirs:.1%} lower")


def read_arguments(program: str, arguments: list[str] | None) -> argparse.Namespace:
    """What both programs that estimate n-gram models are told."""
    parser = argparse.ArgumentParser(prog=program)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--train", nargs="+", required=True)
    parser.add_argument("--dev", required=True)
    parser.add_argument("--lmplz", type=Path, required=True, help="`query` is expected beside it")
    return parser.parse_args(arguments)


def bits_per_byte(tokenizer: Tokenizer, lines: Iterable[str], dev: list[str], lmplz: Path) -> float:
    """Of a model of `lines`, on `dev`, end tokens included."""
    with TemporaryDirectory() as folder:
        arpa = estimate(tokenizer, lines, lmplz, Path(folder))
        command = [lmplz.with_name("query"), "-v", "sentence", str(arpa)]
        scored = subprocess.run(command, input=_pieces(tokenizer, dev), capture_output=True, check=True).stdout.decode()
    totals = [float(line.split()[1]) for line in scored.splitlines() if line.startswith("Total:")]
    if len(totals) != len(dev):
        raise ValueError(f"{len(totals)} scores for {len(dev)} lines")
    return -sum(totals) / math.log10(2) / sum(len(line.encode()) for line in dev)


def estimate(tokenizer: Tokenizer, lines: Iterable[str], lmplz: Path, folder: Path) -> Path:
    """The file, in `folder`, of a model of `lines` in the tokenizer's pieces."""
    arpa = folder / "model.arpa"
    with arpa.open("wb") as file:
        command = [lmplz, "-o", str(ORDER), "-S", "30%", "-T", folder, "--discount_fallback"]
        subprocess.run(command, input=_pieces(tokenizer, lines), stdout=file, stderr=subprocess.DEVNULL, check=True)
    return arpa


def _pieces(tokenizer: Tokenizer, lines: Iterable[str]) -> bytes:
    """The tokens of each line, separated by spaces."""
    return "".join(" ".join(tokenizer.tokens(tokenizer.encode(line))) + "\n" for line in lines).encode()


if __name__ == "__main__":
    main()
