"""Which heads of cross-attention align words.

python -m model.commands.alignment --checkpoint NAME --data FILE [--gold FILE]

The reference is gold if it was made by reading (--gold), else silver: links that a statistical model learns from the
pairs of --data and --align-with. Every head, and the mean of each layer, is scored teacher-forced on the reference
translation, with each row taken for the word that it predicts and for the one that it reads. --json writes the list
`alignment_heads` as Whisper's configurations have it, and what CTranslate2's converters take.
"""

import json
import shlex
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import pandas as pd

from model.analysis.heads import alignments
from model.analysis.heads.silver_alignments import METHOD, silver_alignments
from model.checkpoints.files import atomic_write
from model.checkpoints.store import DEFAULT_CHECKPOINT, load_checkpoint
from model.checkpoints.translator import Translator
from model.command_line import command_parser, run_command, whole_number
from model.trace import Array
from model.training.data import read_pairs

LINKS_BY = {"silver": "silver, both directions agree", "silver_possible": "silver, either direction"}
"""name of links that no head makes -> what they are called"""


@dataclass(frozen=True)
class Reference:
    """The pairs to score, and how their links came about."""

    pairs: Sequence[alignments.AlignedPair]
    kind: str
    """gold or silver"""
    split: str
    """of SPLITS"""
    count_from: int
    """number of a sentence's first word in the file of links"""
    how: str
    """in a sentence"""
    others: Sequence[tuple[str, str]] = ()
    """more sentence pairs for the statistical model to learn from"""


def read_reference(args: Namespace) -> Reference:
    """What --gold, --data and --align-with say.

    Raises:
        ValueError: no pairs, or a line that cannot be read; the message names file and line.
    """
    same = args.gold and args.data and args.gold.exists() and args.data.exists() and args.gold.samefile(args.data)
    data = None if same else args.data
    others = read_pairs(args.align_with) if args.align_with else []
    if args.gold:
        split = args.words or alignments.default_split(alignments.has_sentences(args.gold))
        pairs = alignments.read_gold(args.gold, data, args.count_from, split)[: args.sentences]
        return Reference(pairs, "gold", split, args.count_from, f"gold, {args.gold}", others)
    if data is None:
        raise ValueError("there are no sentence pairs: --data names a file of source<TAB>target, or --gold one of both")
    split = args.words or "marks"
    texts = read_pairs([data])
    links = silver_alignments(texts, others, alignments.SPLITS[split])
    pairs = [alignments.AlignedPair(*text, linked) for text, linked in zip(texts, links, strict=True)]
    how = f"silver, by {METHOD}, learned from {len(texts) + len(others):,} sentence pairs"
    return Reference(pairs[: args.sentences], "silver", split, 0, how, others)


def report(opened: Translator, reference: Reference) -> alignments.AlignmentReport:
    """Score the heads, and beside a gold reference the statistical model that makes silver ones.

    Raises:
        ValueError: none of the pairs can be scored.
    """
    known = {}
    if reference.kind == "gold":
        texts = [(pair.source, pair.target) for pair in reference.pairs]
        links = silver_alignments(texts, reference.others, alignments.SPLITS[reference.split])
        known = {"silver": [one.sure for one in links], "silver_possible": [one.possible for one in links]}
    *_, (_, found) = alignments.measure_alignment(opened, reference.pairs, reference.kind, reference.split, known)
    return found


def tables(found: alignments.AlignmentReport) -> dict[str, pd.DataFrame]:
    """Title -> table: heads, the best first, and what they are compared with."""
    rows = [
        {"layer": layer, "head": head, **_row(found.heads[row, head])}
        for row, layer in enumerate(found.layers)
        for head in range(found.heads.shape[1])
    ]
    heads = pd.DataFrame(rows)
    better = heads[[f"error rate, {name}" for name in alignments.CONVENTIONS]].min(axis="columns")
    means = pd.DataFrame([{"layer": layer, **_row(found.means[i, -1])} for i, layer in enumerate(found.layers)])
    others = pd.DataFrame(
        [
            {"links of": LINKS_BY.get(name, name), **alignments.score_links(each)._asdict()}
            for name, each in found.baselines.items()
        ]
    )
    return {
        "Heads": heads.loc[better.sort_values(kind="stable").index],
        "Mean of all heads of a layer": means,
        "Without any head": others.rename(columns={"aer": "error rate", "f1": "F1"}),
    }


def _row(counts: Array) -> dict[str, float]:
    rates = alignments.alignment_error_rate(counts)
    scores = alignments.score_links(counts[rates.argmin()])
    named = {f"error rate, {name}": float(rate) for name, rate in zip(alignments.CONVENTIONS, rates, strict=True)}
    return named | {"precision": scores.precision, "recall": scores.recall, "F1": scores.f1}


def summary(found: alignments.AlignmentReport, reference: Reference) -> list[str]:
    """What was found, in sentences; the last two are for the configurations of other tools."""
    best, (layer, count, aer) = found.alignment_heads, found.ctranslate2
    first = best[0]
    left_out = f" {found.left_out:,} left out, whose words the model's tokens do not spell." if found.left_out else ""
    rate = alignments.alignment_error_rate(found.means[-1, 0])[alignments.CONVENTIONS.index("predicts")]
    return [
        f"Reference: {reference.how}; words are cut at {reference.split} and count from {reference.count_from}.",
        f"{found.pairs:,} sentence pairs scored, teacher-forced.{left_out}",
        f"Best: layer {first.layer}, head {first.head}, if a row stands for the word that it {first.convention}: error "
        f"rate {first.aer:.3f}. Heads within {alignments.WITHIN} of it: {len(best)}.",
        f"CTranslate2: alignment_layer={layer}, alignment_heads={count} (the mean of the first {count} heads of this "
        f"layer), error rate {aer:.3f}; its default, the first head of the last layer, has {rate:.3f}.",
        f"predicting_heads = {_places(found.predicting_heads)} (if every row stands for the word that it predicts)",
        f"alignment_heads = {_places(best)}",
    ]


def _places(heads: Sequence[alignments.AlignmentHead]) -> list[list[int]]:
    return [[one.layer, one.head] for one in heads]


def main(arguments: list[str] | None = None) -> None:
    """Print the error rate of every head, and the list of those that align; with --json write them to a file."""
    words = sys.argv[1:] if arguments is None else arguments
    parser = command_parser("commands.alignment", "Find the heads of cross-attention that align words.")
    parser.add_argument("--checkpoint", default=DEFAULT_CHECKPOINT, help="name or folder (default: %(default)s)")
    parser.add_argument("--data", type=Path, help="lines of source<TAB>target; plain, .gz or .xz")
    parser.add_argument(
        "--gold",
        type=Path,
        help="links in Pharaoh format, i-j sure, i?j or ipj possible: a line for each of --data, or lines of "
        "source<TAB>target<TAB>links; without it the reference is silver",
    )
    parser.add_argument(
        "--count-from", type=int, choices=(0, 1), default=0, help="number of the first word (default: 0)"
    )
    parser.add_argument(
        "--words",
        choices=alignments.SPLITS,
        help="how the links count words: marks apart, or at spaces as in tokenised text (default: spaces for a file of "
        "links alone, else marks)",
    )
    parser.add_argument("--sentences", type=whole_number(1), help="score the first so many pairs (default: all)")
    parser.add_argument(
        "--align-with",
        nargs="*",
        default=[],
        type=Path,
        help="more sentence pairs for the statistical model to learn from",
    )
    parser.add_argument("--json", type=Path, metavar="OUT", help="also write the report to this file")
    parser.add_argument("--device", default="auto", help="cpu, cuda, cuda:1, ... (default: auto)")
    args = parser.parse_args(words)
    started = monotonic()
    reference = read_reference(args)
    opened = load_checkpoint(args.checkpoint, args.device)
    if not isinstance(opened, Translator):
        raise ValueError(f"{args.checkpoint} has no cross-attention: only encoder-decoders align two texts")
    found = report(opened, reference)
    for title, table in tables(found).items():
        print(f"\n{title}\n{table.to_string(index=False, float_format=lambda x: f'{x:.3f}')}")
    print("", *summary(found, reference), f"{monotonic() - started:.1f} seconds.", sep="\n")
    if args.json:
        content = found.to_json() | {
            "reference_is": reference.how,
            "words": reference.split,
            "count_from": reference.count_from,
            "checkpoint": opened.name,
            "weights": opened.hash,
            "command": f"python -m model.commands.alignment {shlex.join(map(str, words))}",
        }
        with atomic_write(args.json) as path:
            path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    run_command(main)
