"""Prepare pairs for what people type: python -m model.commands.mixture --train FILE... --without LIST... --out FOLDER.

Each file is written without what must not be learned, and once more as people type it; greetings and copies are added.
"""

import hashlib
import random
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from string import ascii_lowercase

from model.command_line import command_parser, run_command, whole_number
from model.training.data import read_pairs

PairOfTexts = tuple[str, str]

GREETING = re.compile(
    r"(hello|hi|hey|good (morning|afternoon|evening|night|day|luck)|(good)?bye|thanks?|how are|see you|nice to meet"
    r"|welcome|happy|merry|congratulations|i'm sorry|excuse me|what's up|have an? (nice|good)|take care|my name)\b",
    re.IGNORECASE,
)
LONGEST_GREETING, LONGEST_COPY = 5, 12
"""words of a greeting, and of a sentence in which a name is exchanged"""
NAME = 0.8
"""share of its sentences whose translation has a name unchanged; Mary, who becomes Maria in many, is none"""
SHARES = {"names": 0.3, "words": 0.25, "numbers": 0.15, "sentences": 0.3}
"""of the copies: names, made-up words, numbers, and sentences with another name or number in them"""
ONSETS, VOWELS, CODAS = (
    "b bl br ch d dr f fl g gl gr h j k kl l m n p pl qu r s sh sk sn st t tr v w y z",
    "aeiou",
    "bdfgklmnprstxz",
)
KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm", "qwertz")


def main(arguments: list[str] | None = None) -> None:
    """Write the files of the mixture, and held-out.tsv."""
    parser = command_parser("commands.mixture", "Pairs for what people type.")
    parser.add_argument("--train", nargs="+", type=Path, required=True, help="lines of source<TAB>target")
    parser.add_argument(
        "--without", nargs="+", type=Path, required=True, help="leave out pairs with the sources of these"
    )
    parser.add_argument(
        "--hold-out", type=Path, required=True, help="the one of --train that held-out.tsv is taken from"
    )
    parser.add_argument("--n-held-out", type=whole_number(1), default=500, help="pairs of held-out.tsv (default: 500)")
    parser.add_argument("--n-copies", type=whole_number(1), default=60_000, help="pairs of copies.tsv (default: 60000)")
    parser.add_argument("--out", type=Path, required=True, help="folder for the files")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(arguments)
    held_out = hold_out(read_pairs([args.hold_out]), args.n_held_out)
    forbidden = {fold(source) for source, _ in [*read_pairs(args.without), *held_out]}
    texts = {path.name.split(".")[0]: without(read_pairs([path]), forbidden) for path in args.train}
    everything = [pair for pairs in texts.values() for pair in pairs]
    texts["greetings"] = [pair for pair in everything if is_greeting(pair[0])]
    rng = random.Random(args.seed)
    texts |= {
        f"{name}-typed": [pair for each in pairs if (pair := as_typed(each, rng))] for name, pairs in texts.items()
    }
    texts["copies"] = without(copies(everything, args.n_copies, rng), forbidden)
    args.out.mkdir(parents=True, exist_ok=True)
    for name, pairs in (texts | {"held-out": held_out}).items():
        if pairs:
            lines = (f"{source}\t{target}\n" for source, target in pairs)
            (args.out / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")


def fold(text: str) -> str:
    """Letters and digits alone, in small letters: inputs that differ in nothing else count as the same."""
    return "".join(character for character in text.casefold() if character.isalnum())


def without(pairs: Iterable[PairOfTexts], forbidden: set[str]) -> list[PairOfTexts]:
    """The pairs whose folded source is not forbidden."""
    return [pair for pair in pairs if fold(pair[0]) not in forbidden]


def hold_out(pairs: Iterable[PairOfTexts], count: int) -> list[PairOfTexts]:
    """`count` pairs with different sources: those whose folded source has the smallest SHA-256."""
    by_source = {fold(source): (source, target) for source, target in pairs}
    return [by_source[key] for key in sorted(by_source, key=lambda key: hashlib.sha256(key.encode()).digest())[:count]]


def is_greeting(source: str) -> bool:
    """True if a sentence is short and begins as greetings and small talk do."""
    return bool(GREETING.match(source)) and len(source.split()) <= LONGEST_GREETING


def as_typed(pair: PairOfTexts, rng: random.Random) -> PairOfTexts | None:
    """The pair with its source as people type it; None where that is the source itself.

    Capitals, apostrophes and commas go from the source alone: the translation keeps its spelling. A mark at the end
    goes from both, so that the translation ends as its source does.
    """
    source, target = pair
    if source[-1:] in ".!?" and target[-1:] in ".!?" and rng.random() < 0.7:
        source, target = source[:-1], target[:-1]
    if rng.random() < 0.7:
        source = re.sub("['’]", "", source)
    if rng.random() < 0.3:
        source = source.replace(",", "")
    case = rng.choices([str.lower, _title, str.upper, str], [0.7, 0.1, 0.03, 0.17])[0]
    source = case(source)
    return (source, target) if source != pair[0] and fold(target) else None


def _title(text: str) -> str:
    return " ".join(word[:1].upper() + word[1:] for word in text.split())


def copies(pairs: list[PairOfTexts], count: int, rng: random.Random) -> list[PairOfTexts]:
    """Pairs that must be copied: names of the training pairs, made-up words, numbers, and such within sentences."""
    short = [pair for pair in pairs if len(pair[0].split()) <= LONGEST_COPY]
    shared = [(pair, words) for pair in short if (words := shared_words(*pair))]
    names = _names(short, [word for _, words in shared for word in words])
    made = []
    for kind in rng.choices(list(SHARES), list(SHARES.values()), k=count):
        if kind == "names":
            made.append((name := " ".join(rng.choices(names, k=rng.choice((1, 1, 2)))), name))
        elif kind == "words":
            made.append((word := " ".join(made_up_word(rng) for _ in range(rng.choice((1, 1, 2)))), word))
        elif kind == "numbers":
            made.append(number(rng))
        else:
            pair, words = rng.choice(shared)
            old = rng.choice(words)
            new = rng.choice((rng.choice(names), made_up_word(rng).capitalize()))
            if old.isdecimal():  # another number with as many digits
                new = old[0] + "".join(rng.choices("0123456789", k=len(old) - 1))
            source, target = (re.sub(rf"\b{old}\b", new, text) for text in pair)
            made.append((source, target))
    return made


def _names(pairs: list[PairOfTexts], shared: list[str]) -> list[str]:
    """Words with a capital that nearly all translations of their sentences have unchanged."""
    seen = Counter(word for source, _ in pairs for word in set(re.findall(r"\b[A-Z][a-z]+\b", source)))
    unchanged = Counter(shared)
    return sorted(word for word, often in seen.items() if unchanged[word] >= max(2, NAME * often))


def shared_words(source: str, target: str) -> list[str]:
    """Numbers, and words with a capital that do not begin the sentence, which both sides have once and alike."""
    words = [re.findall(r"\w+", text) for text in (source, target)]
    return [
        word
        for word in dict.fromkeys(words[0][1:])
        if re.fullmatch(r"[A-Z][a-z]+|\d+", word) and words[0].count(word) == words[1].count(word) == 1
    ]


def made_up_word(rng: random.Random) -> str:
    """A word that can be spoken, a run of the keyboard, or any letters."""
    kind = rng.random()
    if kind < 0.6:
        parts = [rng.choice(ONSETS.split()) + rng.choice(VOWELS) for _ in range(rng.choice((1, 2, 2, 3)))]
        return "".join(parts) + rng.choice((*CODAS, ""))
    if kind < 0.8:
        row = rng.choice(KEYBOARD)
        start = rng.randrange(len(row) - 2)
        return row[start : start + rng.randint(3, 6)]
    return "".join(rng.choices(ascii_lowercase, k=rng.randint(3, 7)))


def number(rng: random.Random) -> PairOfTexts:
    """A number and the same in German: 3.5 is 3,5, and others are as they are."""
    whole = str(rng.randrange(10 ** rng.randint(1, 6)))
    kind = rng.random()
    if kind < 0.15:
        return f"{whole}.{(rest := rng.randrange(100))}", f"{whole},{rest}"
    if kind < 0.4:
        sequence = " ".join(str(rng.randrange(30)) for _ in range(rng.randint(2, 5)))
        return sequence, sequence
    return whole, whole


if __name__ == "__main__":
    run_command(main)
