"""Measure every head over many sentences, for the page "Heads and layers".

python -m model.head_scores --checkpoint en-de --data dev.tsv --of "the Tatoeba development set" [--sentences 1000]

writes heads.json beside the weights. With `--align-with train.tsv` a translator's cross-attention is also compared with
silver alignments of the sentences, which a statistical model learns from that text.
"""

import argparse
import shlex
import sys
from pathlib import Path

from model.analysis.heads.many_sentences import ManySentences, measure_heads, write_heads
from model.analysis.heads.silver_alignments import METHOD, silver_alignments
from model.checkpoints.store import check_own, checkpoint_path, load_checkpoint
from model.command_line import run_command, whole_number
from model.needs import Need
from model.training.data import read_pairs, read_texts


def main(arguments: list[str] | None = None) -> None:
    """Run the model over the sentences, a translator on the given translations, and write what its heads did."""
    words = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(prog="python -m model.head_scores", description="Measure heads over sentences.")
    parser.add_argument("--checkpoint", required=True, help="its name")
    parser.add_argument("--data", required=True, help="lines of source<TAB>target, for a language model plain lines")
    parser.add_argument("--of", required=True, help="what the sentences are, for the screen")
    parser.add_argument("--sentences", type=whole_number(1), default=1000, help="the first so many (default: 1000)")
    parser.add_argument("--align-with", nargs="*", default=[], help="sentence pairs from which alignments are learned")
    args = parser.parse_args(words)
    opened = load_checkpoint(args.checkpoint, "cpu")
    check_own(opened, "The measurement of heads")
    pairs = Need.CROSS_ATTENTION in opened.features
    texts = read_pairs([args.data]) if pairs else [(line,) for line in read_texts(args.data)]
    texts = [tuple(map(opened.prepare, text)) for text in texts[: args.sentences]]
    links, aligned = [], ""
    if args.align_with:
        others = read_pairs(args.align_with)
        links = silver_alignments(texts, others)
        names = " and ".join(Path(name).name for name in args.align_with)
        aligned = f"{METHOD}, trained on these and on the {len(others):,} sentence pairs of {names}"
    heads = measure_heads(opened, (opened.trace(*text) for text in texts), links)
    command = f"python -m model.head_scores {shlex.join(words)}"
    found = ManySentences(len(texts), args.of, command, heads, aligned)
    write_heads(checkpoint_path(args.checkpoint), opened.hash, found)


if __name__ == "__main__":
    run_command(main)
