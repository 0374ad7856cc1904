"""Score a checkpoint: python -m model.evaluate --checkpoint NAME --data FILE [--beam-size 4].

A translator gets chrF and BLEU with 95% bootstrap intervals, a language model bits per byte, a masked language model
the accuracy of its guesses.
"""

import json
import re
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import sacrebleu
from sacrebleu.metrics.base import Metric
from sacremoses import MosesPunctNormalizer, MosesTokenizer

from model.checkpoints.card import digits, in_digits
from model.checkpoints.files import atomic_write, read_text
from model.checkpoints.language_model import LanguageModel
from model.checkpoints.masked_model import MaskedModel
from model.checkpoints.store import DEFAULT_CHECKPOINT, check_own, checkpoint_path, load_checkpoint
from model.checkpoints.translator import Translator
from model.command_line import command_parser, real_number, run_command, whole_number
from model.training.data import read_lines, read_pairs, read_texts
from model.training.tasks import predict_tokens
from model.translate import join_lines

ENDS = (".", "!", "?", "…")
"""marks that end a sentence"""
RESAMPLES = 1000
"""of the sentences, with replacement, for an interval (Koehn 2004); sacreBLEU fixes their seed"""


class Measured(NamedTuple):
    """A score and how it was measured."""

    value: float
    how: str
    """sacreBLEU's signature; of other metrics, how much text was scored"""
    plus_minus: float | None = None
    """half the width of the 95% interval; None: none was measured"""


def main(arguments: list[str] | None = None) -> None:
    """Print the score of the checkpoint's family as the last line; for BLEU with sacreBLEU's signature."""
    parser = command_parser("evaluate", "Measure how good a checkpoint is.")
    parser.add_argument("--checkpoint", default=DEFAULT_CHECKPOINT, help="name or folder (default: %(default)s)")
    parser.add_argument(
        "--data", type=Path, required=True, help="lines of source<TAB>target, else lines of text; plain, .gz or .xz"
    )
    parser.add_argument("--beam-size", type=whole_number(1), default=4, help="1 is greedy decoding (default: 4)")
    parser.add_argument(
        "--alpha", type=real_number(0), default=0.6, help="exponent of the length penalty (default: 0.6)"
    )
    parser.add_argument("--device", default="auto", help="cpu, cuda, cuda:1, ... (default: auto)")
    parser.add_argument("--output", type=Path, help="also write the translations to this file")
    parser.add_argument(
        "--lowercased-reference",
        type=Path,
        help="a lower-cased, normalised, Moses-tokenised reference: also print BLEU against it",
    )
    parser.add_argument(
        "--record", metavar="SET", help="save the scores under this name in the checkpoint's metrics.json"
    )
    parser.add_argument(
        "--answers",
        action="store_true",
        help="targets list all acceptable translations, separated by ' | ': print those not accepted, and the share",
    )
    args = parser.parse_args(arguments)
    opened = load_checkpoint(args.checkpoint, args.device)
    if not isinstance(opened, Translator):
        check_own(opened, "The score of a text")
    if isinstance(opened, Translator):
        scores = _translation_scores(opened, args)
    else:
        scores = score_texts(opened, read_texts(args.data), args.data)
    if args.record:
        record_scores(checkpoint_path(args.checkpoint) / "metrics.json", args.record, args.beam_size, scores)
    for label, score in scores.items():
        print(f"{label} = {in_digits(label, score.value, score.plus_minus)} {score.how}")


def _translation_scores(translator: Translator, args: Namespace) -> dict[str, Measured]:
    pairs = read_pairs([args.data])
    sources = [source for source, _ in pairs]
    translations = [join_lines(text) for text in translator.translate(sources, args.beam_size, args.alpha)]
    if args.output:
        args.output.write_text("".join(f"{line}\n" for line in translations), encoding="utf-8")
    if args.answers:
        return _accepted_share(pairs, translations)
    return score_translations(translations, [target for _, target in pairs], args.lowercased_reference)


def _accepted_share(pairs: list[tuple[str, str]], translations: list[str]) -> dict[str, Measured]:
    """Print each translation that is not accepted; label -> (share of the others, their number)."""
    rejected = [
        (source, translation)
        for (source, answers), translation in zip(pairs, translations, strict=True)
        if not is_accepted(source, translation, answers.split(" | "))
    ]
    for source, translation in rejected:
        print(f"{source} -> {translation}")
    accepted = len(pairs) - len(rejected)
    return {"accepted": Measured(accepted / len(pairs), f"{accepted} of {len(pairs)}")}


def is_accepted(source: str, translation: str, answers: Sequence[str]) -> bool:
    """True if the translation is one of the answers, letter by letter.

    Two differences do not count: a capital at the beginning where the answer has a small letter, and one mark at the
    end if the source ends without one. A small letter for a capital is wrong: it begins German nouns and sentences.
    """
    unended = not source.endswith(ENDS)

    def fold(text: str) -> str:
        return text[:-1] if unended and text.endswith(ENDS) else text

    return any(fold(translation) in (answer, answer[:1].upper() + answer[1:]) for answer in map(fold, answers))


def score_texts(opened: LanguageModel | MaskedModel, texts: Sequence[str], path: Path) -> dict[str, Measured]:
    """Bits per byte or accuracy on the texts of the file at `path`.

    Raises:
        ValueError: the model can read none of them.
    """
    lines = [opened.prepare(text) for text in texts]
    predictions = predict_tokens(opened.model, opened.tokenizer, lines, opened.device)
    if not predictions.tokens:
        raise ValueError(f"{path} has no line that the model can read")
    how = f"{len(lines):,} lines, {predictions.tokens:,} tokens predicted"
    if isinstance(opened, MaskedModel):
        return {"masked-token accuracy": Measured(predictions.correct / predictions.tokens, how)}
    return {"bits per byte": Measured(predictions.bits_per_byte(lines), how)}


def score_translations(
    translations: list[str], references: list[str], lowercased: Path | None = None
) -> dict[str, Measured]:
    """Label -> score with its interval: chrF (Popović 2015, here chrF2), and cased, detokenised BLEU last. With the
    file of a lower-cased, normalised, tokenised reference there is one more BLEU.

    Raises:
        ValueError: that reference has another number of lines.
    """
    scores = {}
    if lowercased:
        reference = read_lines(lowercased)
        if len(reference) != len(translations):
            raise ValueError(f"{lowercased} has {len(reference):,} lines for {len(translations):,} pairs of --data")
        like_theirs = [like_multi30k(line) for line in translations]
        metric = sacrebleu.BLEU(tokenize="none", force=True)
        scores["lower-cased, normalised, tokenised BLEU"] = _score(metric, like_theirs, reference)
    scores["chrF2"] = _score(sacrebleu.CHRF(), translations, references)
    return scores | {"BLEU": _score(sacrebleu.BLEU(), translations, references)}


def _score(metric: Metric, translations: list[str], references: list[str]) -> Measured:
    score = metric.corpus_score(translations, [references], n_bootstrap=RESAMPLES)
    return Measured(score.score, str(metric.get_signature()), float(score._ci))


def record_scores(path: Path, name: str, beam_size: int, scores: Mapping[str, Measured]) -> None:
    """Add the scores of data set `name`, with beam size, intervals and signatures, to a metrics.json."""
    metrics = json.loads(read_text(path)) if path.exists() else {}
    metrics[name] = {
        "beam_size": beam_size,
        "scores": {
            label: {
                "value": round(score.value, digits(label)),
                **({} if score.plus_minus is None else {"plus_minus": round(score.plus_minus, digits(label))}),
                "signature": score.how,
            }
            for label, score in scores.items()
        },
    }
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(metrics, indent=2) + "\n", encoding="utf-8")


def like_multi30k(text: str) -> str:
    """Lower-cased, punctuation-normalised and Moses-tokenised, like the references of the Multi30k task."""
    normalised = MosesPunctNormalizer(lang="de").normalize(text.lower())
    return re.sub(r"\s+", " ", MosesTokenizer(lang="de").tokenize(normalised, return_str=True))


if __name__ == "__main__":
    run_command(main)
