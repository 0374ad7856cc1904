"""Compare two models, or two saved runs.

python -m model.commands.compare A B --data FILE [--html FILE] [--fail-on LIMITS]

A and B are checkpoints or Hugging Face folders of one architecture, before and after a change: NAME, NAME@STEP for a
snapshot of its training, NAME:bf16 or NAME:int8 for the same weights rounded. Two .npz files of `trace.save` are
compared array by array.
"""

import argparse
import hashlib
import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
import sacrebleu
from sacrebleu.significance import PairedTest

from model.analysis.runs import revisions
from model.analysis.runs.trace_differences import TOLERANCE, compare, in_words, summarise
from model.checkpoints.card import digits
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.files import atomic_write
from model.checkpoints.snapshots import open_snapshot
from model.checkpoints.store import check_own, load_checkpoint
from model.checkpoints.translator import Translator
from model.command_line import command_parser, real_number, run_command, whole_number
from model.evaluate import RESAMPLES, Measured, score_texts, score_translations
from model.trace import Array, Trace
from model.training.data import read_lines, read_pairs, read_texts
from model.translate import join_lines

REVISION = re.compile(r"(?P<name>.+?)(?:@(?P<step>\d+)|:(?P<precision>bf16|int8))?")
LIMITS = {
    "weights": "largest relative difference of a layer's or a head's weights",
    "outputs": "largest relative difference of the residual stream after a sub-layer",
    "bleu": "points of BLEU that B is below A",
    "chrf": "points of chrF2 that B is below A",
    "translations": "share of the texts whose translation is another one; of other models, of the guesses",
}
"""what --fail-on can limit -> what is measured"""
MOST_ROWS = 20
"""of a table in the terminal"""


@dataclass(frozen=True)
class Report:
    """What differs between two models."""

    names: tuple[str, str]
    blocks: Sequence[revisions.BlockDifference]
    heads: Mapping[tuple[str, int], Array]
    """(kind, layer) -> (head,): relative difference of its weights"""
    outputs: revisions.OutputDifference
    texts: int
    """whose runs were compared"""
    changed: Sequence[tuple[str, str, str]] = ()
    """source, translation by A, translation by B, where they differ"""
    translated: int = 0
    """texts that both translated"""
    scores: Mapping[str, tuple[Measured, Measured]] = field(default_factory=dict)
    """metric -> of A, of B"""
    p_values: Mapping[str, float] = field(default_factory=dict)
    """metric -> of a difference as large by chance (paired bootstrap, Koehn 2004)"""

    @property
    def first_block(self) -> revisions.BlockDifference | None:
        """The first layer, or matrix outside the layers, whose weights differ."""
        return next((block for block in self.blocks if block.relative > 0), None)

    def measured(self) -> dict[str, float]:
        """What --fail-on holds its limits against; a score only where there are references."""
        moved = [block.relative for block in self.blocks]
        moved += [float(np.nanmax(heads, initial=0.0)) for heads in self.heads.values()]
        share = len(self.changed) / self.translated if self.translated else self.outputs.guesses
        found = {
            "weights": max(moved),
            "outputs": max(self.outputs.streams.values(), default=0.0),
            "translations": share,
        }
        lost = {name: ours.value - theirs.value for name, (ours, theirs) in self.scores.items()}
        return found | {key: lost[name] for key, name in (("bleu", "BLEU"), ("chrf", "chrF2")) if name in lost}

    def tables(self) -> dict[str, pd.DataFrame]:
        """Title -> table, whole."""
        tables = {
            "Weights by layer": pd.DataFrame(
                [(block.name, block.relative, block.largest) for block in self.blocks],
                columns=["layer or matrix", "relative difference", "largest difference"],
            ),
            "Heads by how far their weights moved": pd.DataFrame(
                [
                    (f"{kind} layer {layer} head {head}", moved)
                    for kind, layer, head, moved in revisions.ranked_heads(self.heads)
                ],
                columns=["head", "relative difference of its weights"],
            ),
            "Heads by how far their attention moved": pd.DataFrame(
                [
                    (f"{kind} layer {layer} head {head}", moved)
                    for kind, layer, head, moved in revisions.ranked_heads(self.outputs.patterns)
                ],
                columns=["head", "total variation of its weights"],
            ),
            "Residual stream": pd.DataFrame(
                [(f"{stack} {layer} {name}", apart) for (stack, layer, name), apart in self.outputs.streams.items()],
                columns=["after", "relative difference"],
            ),
        }
        if self.scores:
            tables["Scores"] = self._score_table()
        if self.changed:
            tables["Changed translations"] = pd.DataFrame(self.changed, columns=["source", *self.names])
        return tables

    def _score_table(self) -> pd.DataFrame:
        rows = []
        for name, pair in self.scores.items():
            a, b = (
                f"{each.value:.{digits(name)}f}" + (f" ± {each.plus_minus:.{digits(name)}f}" if each.plus_minus else "")
                for each in pair
            )
            p = f"{self.p_values[name]:.3f}" if name in self.p_values else ""
            rows.append((name, a, b, f"{pair[1].value - pair[0].value:+.{digits(name)}f}", p))
        return pd.DataFrame(rows, columns=["metric", *self.names, "difference", "p"])

    def summary(self) -> list[str]:
        """What was found, in sentences."""
        found = self.measured()
        said = [f"Weights: {self._first_in_words()} The largest relative difference is {found['weights']:.3g}."]
        first = self.outputs.first
        where = f"first differs after {first[0]} {first[1]} {first[2]}" if first else "is the same, bit for bit"
        said.append(
            f"Outputs on {self.texts} texts: the residual stream {where}; log p of a token differs by "
            f"{self.outputs.log_probability:.3g} nats in the mean, {self.outputs.guesses:.1%} of the most probable "
            "tokens are others."
        )
        if self.translated:
            said.append(f"Translations: {len(self.changed)} of {self.translated} differ.")
        return said

    def _first_in_words(self) -> str:
        if self.first_block is None:
            return "all are equal, bit for bit."
        differ = sum(block.relative > 0 for block in self.blocks)
        return f"{differ} of {len(self.blocks)} layers and matrices differ, first {self.first_block.name}."


def open_revision(text: str, device: str) -> Checkpoint:
    """Open NAME, NAME@STEP, NAME:bf16 or NAME:int8, for this caller alone.

    Raises:
        ValueError: there is no such checkpoint or snapshot, or it is damaged.
    """
    match = REVISION.fullmatch(text)
    if match is None or Path(text).is_dir():
        return load_checkpoint(text, device)
    opened = load_checkpoint(match["name"], device)
    if match["step"]:
        opened = open_snapshot(opened, int(match["step"]))
    if match["precision"]:
        revisions.round_weights(opened, match["precision"])
        opened = replace(opened, hash=hashlib.sha256(f"{opened.hash}:{match['precision']}".encode()).hexdigest())
    return opened


def runs_on_same_tokens(before: Checkpoint, after: Checkpoint, texts: Sequence[str]) -> Iterator[tuple[Trace, Trace]]:
    """The runs of both on each text; a translator's on the translation that `before` makes.

    Raises:
        ValueError: the two cut a text into different tokens.
    """
    for text in texts:
        ours = before.trace(before.truncate(text))
        theirs = after.trace_ids(ours.prompt, ours.next_ids)
        if ours.src_ids != theirs.src_ids or ours.src_tokens != theirs.src_tokens:
            raise ValueError(f"{before.name} and {after.name} cut {text[:60]!r} into different tokens")
        yield ours, theirs


def report(
    before: Checkpoint,
    after: Checkpoint,
    texts: Sequence[str],
    references: Sequence[str] = (),
    traced: int = 50,
    beam_size: int = 4,
    names: tuple[str, str] | None = None,
) -> Report:
    """Compare two models of one architecture, which may be one; on the first `traced` texts inside. Without references,
    as many as texts, there are no scores. The names are for the tables; without them they are the checkpoints'.

    Raises:
        ValueError: the two have other parameters or tokens, or there is no text.
    """
    blocks = revisions.block_differences(before, after)
    texts, inside = list(texts), list(texts)[:traced]
    if not inside:
        raise ValueError("there is no text to run the two models on")
    first = next(runs_on_same_tokens(before, after, inside))
    found = Report(
        names=names or (before.name, after.name),
        blocks=blocks,
        heads=revisions.head_differences(*first),
        outputs=revisions.output_differences(runs_on_same_tokens(before, after, inside)),
        texts=len(inside),
    )
    if not isinstance(before, Translator) or not isinstance(after, Translator):
        return found
    ours, theirs = ([join_lines(line) for line in each.translate(texts, beam_size)] for each in (before, after))
    changed = [row for row in zip(texts, ours, theirs, strict=True) if row[1] != row[2]]
    found = replace(found, changed=changed, translated=len(texts))
    if not references:
        return found
    both = [score_translations(lines, list(references)) for lines in (ours, theirs)]
    return replace(
        found,
        scores={name: (both[0][name], both[1][name]) for name in both[0]},
        p_values=_p_values(ours, theirs, list(references)),
    )


def _p_values(ours: list[str], theirs: list[str], references: list[str]) -> dict[str, float]:
    """Metric -> share of resampled test sets whose difference is as large by chance; 1 where the two are equal."""
    if ours == theirs:
        return {"BLEU": 1.0, "chrF2": 1.0}
    metrics = {"BLEU": sacrebleu.BLEU(references=[references]), "chrF2": sacrebleu.CHRF(references=[references])}
    _, rows = PairedTest([("A", ours), ("B", theirs)], metrics, None, "bs", RESAMPLES)()
    return {name: float(rows[name][1].p_value) for name in metrics if name in rows}


def read_limits(text: str) -> dict[str, float]:
    """`weights=0.01,bleu=0.5,translations=5%` -> name -> largest value allowed.

    Raises:
        argparse.ArgumentTypeError: a name is not one of LIMITS, or a limit is no number of 0 or more.
    """
    limits = {}
    for part in text.split(","):
        name, equals, value = (word.strip() for word in part.partition("="))
        if name not in LIMITS or not equals:
            raise argparse.ArgumentTypeError(
                f"must be like weights=0.01,translations=5%; known: {', '.join(LIMITS)}; got {part!r}"
            )
        limits[name] = real_number(0)(value.removesuffix("%")) / (100 if value.endswith("%") else 1)
    return limits


def exceeded(found: Report, limits: Mapping[str, float]) -> list[str]:
    """A sentence for each limit that is exceeded.

    Raises:
        ValueError: a limit is on what was not measured.
    """
    measured = found.measured()
    if missing := [name for name in limits if name not in measured]:
        raise ValueError(
            f"--fail-on {', '.join(missing)} needs translators and lines of source<TAB>reference in --data"
        )
    return [
        f"{name} = {measured[name]:.4g} is above {limit:g}: {LIMITS[name]}"
        for name, limit in limits.items()
        if not measured[name] <= limit
    ]


def html_report(found: Report, failures: Sequence[str] = ()) -> str:
    """The whole report as a page of HTML that asks no other machine for anything."""
    names = [html.escape(name) for name in found.names]
    paragraphs = [html.escape(line) for line in (*found.summary(), *failures)]
    tables = [
        f"<h2>{html.escape(title)}</h2>\n{table.to_html(index=False, float_format=lambda x: f'{x:.3g}', border=0)}"
        for title, table in found.tables().items()
    ]
    style = (
        ":root{color-scheme:light dark}"
        "body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}"
        "table{border-collapse:collapse;font-variant-numeric:tabular-nums}td,th{padding:.2rem .8rem;text-align:left;"
        "border-bottom:1px solid #8886;overflow-wrap:anywhere}"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{names[0]} | {names[1]}</title><style>{style}</style></head>\n"
        f"<body>\n<h1>{names[0]} | {names[1]}</h1>\n"
        + "\n".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
        + "\n".join(tables)
        + "\n</body>\n</html>\n"
    )


def compare_runs(arguments: list[str] | None = None) -> int:
    """Print what differs between two saved runs; 1 if anything does and --fail-on-diff was given."""
    parser = command_parser("commands.compare", "Compare the files of two runs.")
    parser.add_argument("before", help="file that trace.save() wrote")
    parser.add_argument("after")
    about = "share of the largest number of each array by which it may differ (default: %(default)g)"
    parser.add_argument("--tolerance", type=real_number(0, finite=False), default=TOLERANCE, help=about)
    parser.add_argument("--fail-on-diff", action="store_true", help="exit with 1 if anything differs by more")
    args = parser.parse_args(arguments)
    try:
        before, after = Trace.load(args.before), Trace.load(args.after)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    texts = {"source": (before.source, after.source), "predicted text": (before.translation, after.translation)}
    texts = {name: pair for name, pair in texts.items() if pair[0] != pair[1]}
    for name, (one, other) in texts.items():
        print(f"{name}: {one!r} | {other!r}")
    found = [each for each in compare(before, after) if each.relative > args.tolerance]
    ours, theirs = before.named_arrays(), after.named_arrays()
    for each in found:
        print(f"{each.name}: {in_words(each, ours, theirs)}")
    print(summarise(found, ours.keys() & theirs.keys(), args.tolerance))
    return int(args.fail_on_diff and bool(found or texts))


def compare_models(arguments: list[str] | None = None) -> int:
    """Print what differs between two models; 1 if a limit of --fail-on is exceeded."""
    about = (
        "Compare two models of one architecture: NAME, folder, NAME@STEP, NAME:bf16 or NAME:int8; or two .npz files."
    )
    parser = command_parser("commands.compare", about)
    parser.add_argument("before", metavar="A")
    parser.add_argument("after", metavar="B")
    parser.add_argument(
        "--data",
        type=Path,
        required=True,
        help="lines of text, or of source<TAB>reference for scores; plain, .gz or .xz",
    )
    parser.add_argument("--traced", type=whole_number(1), default=50, help="texts compared inside (default: 50)")
    parser.add_argument("--beam-size", type=whole_number(1), default=4, help="1 is greedy decoding (default: 4)")
    parser.add_argument("--html", type=Path, metavar="FILE", help="also write the whole report to this file")
    parser.add_argument(
        "--fail-on", type=read_limits, default={}, metavar="LIMITS", help="weights=0.01,bleu=0.5,translations=5%%"
    )
    parser.add_argument("--device", default="auto", help="cpu, cuda, cuda:1, ... (default: auto)")
    args = parser.parse_args(arguments)
    before, after = (open_revision(name, args.device) for name in (args.before, args.after))
    texts, references = _read(args.data)
    found = report(before, after, texts, references, args.traced, args.beam_size, (args.before, args.after))
    if not found.translated and not references:
        found = replace(found, scores=_text_scores(before, after, texts, args.data))
    failures = exceeded(found, args.fail_on)
    for title, table in found.tables().items():
        rest = f" (the first {MOST_ROWS} of {len(table)})" if len(table) > MOST_ROWS else ""
        print(f"\n{title}{rest}\n{table.head(MOST_ROWS).to_string(index=False, float_format=lambda x: f'{x:.3g}')}")
    print("", *found.summary(), *failures, sep="\n")
    if args.html:
        with atomic_write(args.html) as temporary:
            temporary.write_text(html_report(found, failures), encoding="utf-8")
    return int(bool(failures))


def _read(path: Path) -> tuple[list[str], list[str]]:
    """Texts, and their references if the lines have tabs."""
    if not any("\t" in line for line in read_lines(path)):
        return read_texts(path), []
    pairs = read_pairs([path])
    return [source for source, _ in pairs], [reference for _, reference in pairs]


def _text_scores(
    before: Checkpoint, after: Checkpoint, texts: list[str], path: Path
) -> dict[str, tuple[Measured, Measured]]:
    """Bits per byte or accuracy of both; nothing for Hugging Face models, whose tokens count differently."""
    try:
        for opened in (before, after):
            check_own(opened, "The score of a text")
        both = [score_texts(opened, texts, path) for opened in (before, after)]
    except ValueError:
        return {}
    return {name: (both[0][name], both[1][name]) for name in both[0]}


def main(arguments: list[str] | None = None) -> int:
    """Compare two saved runs if both names are files or end in .npz, else two models."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("names", nargs="*")
    names = parser.parse_known_args(arguments)[0].names[:2]
    saved = len(names) == 2 and all(name.endswith(".npz") or Path(name).is_file() for name in names)
    return compare_runs(arguments) if saved else compare_models(arguments)


if __name__ == "__main__":
    run_command(main)
