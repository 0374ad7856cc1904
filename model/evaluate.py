"""Score a checkpoint: python -m model.evaluate --checkpoint NAME --data FILE [--beam-size 4]."""

import argparse
import re
from pathlib import Path

import sacrebleu
from sacremoses import MosesPunctNormalizer, MosesTokenizer

from model.checkpoints import DEFAULT_CHECKPOINT, load_checkpoint
from model.data import read_pairs


def main(arguments: list[str] | None = None) -> None:
    """Translate the sources of a parallel file and print BLEU (its last line) with sacreBLEU's signature."""
    parser = argparse.ArgumentParser(prog="python -m model.evaluate", description="BLEU of a checkpoint.")
    parser.add_argument("--checkpoint", default=DEFAULT_CHECKPOINT)
    parser.add_argument("--data", type=Path, required=True, help="source<TAB>target lines (.gz, .xz)")
    parser.add_argument("--beam-size", type=int, default=4)
    parser.add_argument("--alpha", type=float, default=0.6, help="exponent of the length penalty")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--output", type=Path, help="also write the translations here")
    parser.add_argument(
        "--lowercased-reference",
        type=Path,
        help="a lower-cased, normalised, Moses-tokenised reference: print BLEU against it as well",
    )
    args = parser.parse_args(arguments)
    translator = load_checkpoint(args.checkpoint, args.device)
    pairs = read_pairs([args.data])
    translations = translator.translate([source for source, _ in pairs], args.beam_size, args.alpha)
    if args.output:
        args.output.write_text("".join(f"{line}\n" for line in translations), encoding="utf-8")
    if args.lowercased_reference:
        reference = args.lowercased_reference.read_text(encoding="utf-8").splitlines()
        metric = sacrebleu.BLEU(tokenize="none", lowercase=False)
        score = metric.corpus_score([like_multi30k(line) for line in translations], [reference]).score
        print(f"lower-cased, normalised, tokenised BLEU = {score:.2f} {metric.get_signature()}")
    metric = sacrebleu.BLEU()
    score = metric.corpus_score(translations, [[target for _, target in pairs]]).score
    print(f"BLEU = {score:.2f} {metric.get_signature()}")


def like_multi30k(text: str) -> str:
    """Lower-cased, punctuation-normalised and Moses-tokenised, as the Multi30k task's own references."""
    normalised = MosesPunctNormalizer(lang="de").normalize(text.lower())
    return re.sub(r"\s+", " ", MosesTokenizer(lang="de").tokenize(normalised, return_str=True, escape=False))


if __name__ == "__main__":
    main()
