"""The yardsticks of the masked language model: what a unigram and a 5-gram model of the same text guess.

    python -m tests.bench.masked_guesses --checkpoint everyday-mlm --train FILE... --dev FILE --lmplz PATH/TO/lmplz

One piece in seven of the development text is hidden, each alone, so that all see the same text around it. The 5-gram
model (interpolated, modified Kneser-Ney; see tests.bench.kneser_ney) tries every piece of the vocabulary and takes the
most probable one after the four pieces before, or the one with which the whole sentence is most probable, which reads
both sides. Needs `pip install kenlm`, too.
"""

import random
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from model.checkpoints.store import load_checkpoint
from model.checkpoints.tokenizer import MASK
from model.network.config import BOS, EOS
from model.training.data import read_lines
from tests.bench.kneser_ney import ORDER, estimate, read_arguments

SHARE = 1 / 7


def main(arguments: list[str] | None = None) -> None:
    """Print which share of the hidden pieces each guesses right."""
    args = read_arguments("python -m tests.bench.masked_guesses", arguments)
    opened = load_checkpoint(args.checkpoint)
    lines = [opened.tokenizer.encode(line) for line in read_lines(args.dev)]
    rng = random.Random(0)
    places = [[place for place in range(len(line)) if rng.random() < SHARE] for line in lines]
    truth = [line[place] for line, chosen in zip(lines, places, strict=True) for place in chosen]
    text = [line for name in args.train for line in read_lines(name)]
    commonest = Counter(chain.from_iterable(map(opened.tokenizer.encode, text))).most_common(1)[0][0]
    with TemporaryDirectory() as folder:
        arpa = estimate(opened.tokenizer, text, args.lmplz, Path(folder))
        names = opened.tokenizer.tokens(range(opened.config.vocab_size))
        guesses = {
            args.checkpoint: _network(opened, lines, places),
            f"{ORDER}-gram model, both sides": _ngrams(arpa, names, lines, places, ORDER - 1),
            f"{ORDER}-gram model, left side": _ngrams(arpa, names, lines, places, 0),
            f"the most frequent piece, {names[commonest]}": [commonest] * len(truth),
        }
    print(f"{len(truth)} hidden pieces of {len(lines)} lines")
    for name, guessed in guesses.items():
        right = sum(one == other for one, other in zip(guessed, truth, strict=True))
        print(f"{name}: {right / len(truth):.1%} right")


@torch.inference_mode()
def _network(opened, lines: Sequence[list[int]], places: Sequence[list[int]]) -> list[int]:
    guessed = []
    for line, chosen in zip(lines, places, strict=True):
        if chosen:
            ids = torch.tensor([[BOS, *line, EOS]] * len(chosen))
            rows, columns = torch.arange(len(chosen)), torch.tensor(chosen) + 1
            ids[rows, columns] = MASK
            guessed += (opened.model(ids)[rows, columns, MASK + 1 :].argmax(-1) + MASK + 1).tolist()
    return guessed


def _ngrams(
    arpa: Path, names: Sequence[str], lines: Sequence[list[int]], places: Sequence[list[int]], ahead: int
) -> list[int]:
    """The best piece at each place, by its own probability and that of the next `ahead` pieces."""
    import kenlm  # a library that only this yardstick needs

    model = kenlm.Model(str(arpa))

    def score(state: kenlm.State, words: Sequence[str]) -> float:
        total = 0.0
        for word in words:
            after = kenlm.State()
            total += model.BaseScore(state, word, after)
            state = after
        return total

    guessed = []
    for line, chosen in zip(lines, places, strict=True):
        words = [*(names[token] for token in line), "</s>"]
        state = kenlm.State()
        model.BeginSentenceWrite(state)
        for place, word in enumerate(words):
            if place in chosen:
                following = words[place + 1 : place + 1 + ahead]
                guessed.append(max(range(MASK + 1, len(names)), key=lambda i: score(state, [names[i], *following])))
            after = kenlm.State()
            model.BaseScore(state, word, after)
            state = after
    return guessed


if __name__ == "__main__":
    main()
