"""Measure every head over many sentences, for the page "Heads and layers".

python -m model.commands.head_scores --checkpoint en-de --data sentences.txt --of "everyday sentences" \
    [--sentences 10000]

writes heads.json and heads.npz beside the weights. A translator translates lines without a tab itself, as the app does,
and its own token ids are measured. With `--align-with train.tsv` its cross-attention is also compared with silver
alignments of the sentences, which a statistical model learns from that text; with `--parses FILE` self-attention with
silver parses. A run that was stopped goes on where it was. `--draw FILE` only writes the sentences, for
model/commands/silver_parses.py.
"""

import hashlib
import json
import shlex
import shutil
import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from tqdm import tqdm

from model.analysis.heads.alignments import Links
from model.analysis.heads.grammar import Parse, read_parses, relations_of
from model.analysis.heads.many_sentences import ManySentences, describe_distributions, describe_heads, write_heads
from model.analysis.heads.silver_alignments import METHOD, silver_alignments
from model.analysis.heads.tally import Tally
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.store import check_own, checkpoint_path, load_checkpoint
from model.checkpoints.translator import Translator
from model.command_line import command_parser, run_command, whole_number
from model.commands.mixture import fold
from model.needs import Need
from model.training.data import read_lines, read_pairs, read_texts

BEAM_SIZE = 4
"""of the model's own translations: that with which the app writes them"""
BLOCK = 250
"""sentences after which what is known is written down"""
UNFINISHED = "heads-unfinished"
"""folder beside the weights, until all sentences are measured"""

Text = tuple[str, ...]
"""a sentence, for a translator with its translation"""


def main(arguments: list[str] | None = None) -> None:
    """Run the model over the sentences, a translator on given translations or its own, and write what heads did."""
    words = sys.argv[1:] if arguments is None else arguments
    args = _parse(words)
    texts = read_sentences(args.data, args.without)[: args.sentences]
    if args.draw:
        args.draw.write_text("".join(f"{text[0]}\n" for text in texts), encoding="utf-8")
        return
    opened = load_checkpoint(args.checkpoint, "cpu")
    check_own(opened, "The measurement of heads")
    texts = [tuple(map(opened.prepare, text)) for text in texts]
    translates = Need.CROSS_ATTENTION in opened.features
    texts = texts if translates else [text[:1] for text in texts]
    long = [text for text in texts if not all(map(opened.fits, text))]
    if long:
        raise ValueError(f"{len(long):,} of the lines have no room in this model, such as “{long[0][0][:60]}”")
    folder = checkpoint_path(args.checkpoint) / UNFINISHED
    folder.mkdir(exist_ok=True)
    own = translates and any(len(text) == 1 for text in texts)
    written: list[list[int]] = []
    if own:
        texts, written = translated(opened, texts, folder)
    links, aligned = [], ""
    if args.align_with:
        others = read_pairs(args.align_with)
        links = silver_alignments(texts, others)
        names = " and ".join(Path(name).name for name in args.align_with)
        aligned = f"{METHOD}, trained on these and on the {len(others):,} sentence pairs of {names}"
    parses = read_parses(args.parses) if args.parses else {}
    tally = measure(opened, Sentences(texts, links, parses, written), folder)
    parsed = args.parsed_by if parses else ""
    command = f"python -m model.commands.head_scores {shlex.join(words)}"
    heads, distributions = describe_heads(tally), describe_distributions(tally)
    shown = {text for head in heads for text, _ in (*head.best, *head.least)} | {*distributions.texts}
    found = ManySentences(
        len(texts),
        args.of,
        command,
        heads,
        aligned,
        parsed,
        tally.seconds,
        own_translations=own,
        beam_size=BEAM_SIZE if own else 0,
        targets={text[0]: text[1] for text in texts if translates and not own and text[0] in shown},
    )
    write_heads(checkpoint_path(args.checkpoint), opened.hash, found, distributions)
    shutil.rmtree(folder)


def _parse(words: list[str]) -> Namespace:
    parser = command_parser("commands.head_scores", "Measure heads over sentences.")
    parser.add_argument("--checkpoint", required=True, help="its name")
    parser.add_argument("--data", required=True, help="lines of text, for a translator also source<TAB>target")
    parser.add_argument("--of", required=True, help="what the sentences are, for the screen")
    parser.add_argument("--sentences", type=whole_number(1), default=1000, help="the first so many (default: 1000)")
    parser.add_argument("--without", nargs="*", default=[], help="leave out lines that these texts or sources contain")
    parser.add_argument("--align-with", nargs="*", default=[], help="sentence pairs from which alignments are learned")
    parser.add_argument("--parses", type=Path, help="what model/commands/silver_parses.py wrote of the sentences")
    parser.add_argument("--parsed-by", default="a program", help="name of the parser, for the screen")
    parser.add_argument("--draw", type=Path, metavar="FILE", help="only write the sentences to this file")
    return parser.parse_args(words)


def read_sentences(data: Path | str, without: Iterable[Path | str] = ()) -> list[Text]:
    """The lines of a file, with what stands after a tab, but those that other files have.

    Raises:
        ValueError: a file cannot be read, or nothing is left; the message says which.
    """
    first = next((line for line in read_lines(data) if line.strip()), "")
    texts: list[Text] = read_pairs([data]) if "\t" in first else [(line,) for line in read_texts(data)]
    known = {fold(line.partition("\t")[0]) for path in without for line in read_lines(path)}
    kept = [text for text in texts if fold(text[0]) not in known] if known else texts
    if not kept:
        raise ValueError(f"{data} has no line that the files of --without do not have")
    return kept


def translated(opened: Translator, texts: Sequence[Text], folder: Path) -> tuple[list[Text], list[list[int]]]:
    """The texts with the model's own translations where they have none, and the token ids of these; goes on with a file
    that was begun. Texts of which it writes nothing are left out."""
    path = folder / f"translations-{_key(opened, texts)[:16]}.jsonl"
    found = [json.loads(line) for line in read_lines(path)] if path.is_file() and path.stat().st_size else []
    with path.open("a", encoding="utf-8") as file:
        for start in tqdm(range(len(found), len(texts), BLOCK), "translating", unit="block", disable=None):
            made = opened.write_ids([text[0] for text in texts[start : start + BLOCK]], BEAM_SIZE)
            file.writelines(json.dumps(each, ensure_ascii=False) + "\n" for each in made)
            file.flush()
            found += made
    pairs = [
        (text, []) if len(text) > 1 else ((text[0], opened.tokenizer.decode(ids)), ids)
        for text, ids in zip(texts, found, strict=True)
    ]
    kept = [(text, ids) for text, ids in pairs if text[1].strip()]
    return [text for text, _ in kept], [ids for _, ids in kept]


@dataclass(frozen=True)
class Sentences:
    """What is measured, and what is known of it."""

    texts: Sequence[Text]
    links: Sequence[Links]
    """of each text; empty: they are not known"""
    parses: dict[str, Parse]
    """by text"""
    written: Sequence[Sequence[int]] = ()
    """token ids of each target that the model wrote; an empty list: they follow from the text"""


def measure(opened: Checkpoint, sentences: Sentences, folder: Path) -> Tally:
    """Add every sentence to a tally, in blocks that are written down."""
    tally = Tally(opened, relations_of(sentences.parses), folder)
    read = [sentences.texts, sentences.written, len(sentences.links), sorted(sentences.parses.items())]
    key = _key(opened, ["in halves", *read])
    tally.resume(key, [text[0] for text in sentences.texts])
    count = len(sentences.texts)
    for first in tqdm(range(tally.runs, count, BLOCK), "measuring", unit="block", disable=None):
        began = perf_counter()
        for number in range(first, min(first + BLOCK, count)):
            text = sentences.texts[number]
            start = perf_counter()
            # A language model gets an empty continuation: it need not look for its next token.
            if sentences.written and sentences.written[number]:
                trace = opened.trace_ids(text[0], sentences.written[number][: opened.token_limit])
            else:
                trace = opened.trace(*text) if len(text) > 1 or not writes(opened) else opened.trace(text[0], "")
            tally.seconds["recording"] += perf_counter() - start
            links = sentences.links[number] if sentences.links else None
            tally.add(trace, links, sentences.parses.get(trace.source))
        tally.seconds["all"] += perf_counter() - began
        tally.save(key)
    return tally


def writes(opened: Checkpoint) -> bool:
    """Whether it is a language model, which could write on."""
    return Need.LANGUAGE_MODEL in opened.features


def _key(opened: Checkpoint, what: object) -> str:
    """What a measurement is of: the weights, and everything that it reads."""
    return hashlib.sha256(f"{opened.hash} {what!r}".encode()).hexdigest()


if __name__ == "__main__":
    run_command(main)
