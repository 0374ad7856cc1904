"""A count that stands in a text is the number of the things that it counts, in words or digits, in every language."""

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from model.proof.claims import CLAIMS
from model.proof.mistakes import MISTAKES
from pages.views.learn.glossary import questions
from viz.steps.steps import all_steps

ROOT = Path(__file__).parents[1]
ENGLISH = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
GERMAN = "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn"
CHINESE = "〇一二三四五六七八九"
COUNTED: dict[str, tuple[Callable[[], int], tuple[str, ...]]] = {
    "claims": (
        lambda: len({claim.number for claim in CLAIMS}),
        (r"(\S+) (?:claims|statements) that tie", r"yes, (\S+) claims",
         r"measures (\S+) claims", r"[Aa]lle? (\S+) (?:claims|Behauptungen),",
         r"(\S+) (?:Behauptungen|Aussagen), die jedes",
         r"([一二三四五六七八九十]{2,})条论断"),
    ),
    "mistakes": (
        lambda: len(MISTAKES),
        (r"(\S+) (?:classic )?mistakes(?: in implementations|, made| that are easily)", r"(\S+) Fehler, (?:wie|die)",
         r"容易犯的([一二三四五六七八九十]+)个错误"),
    ),
    "questions": (
        lambda: len(questions()),
        (r"(\S+) questions of the kind asked about", r"(\S+) Fragen, wie sie zu",
         r"([一二三四五六七八九十]+)道"),
    ),
    "steps of a head": (lambda: len(all_steps()), (r"(\S+) steps, from the projections",)),
    "sentences": (
        lambda: json.loads((ROOT / "checkpoints/en-de/heads.json").read_text("utf-8"))["sentences"],
        (r"([\d,]+) sentences per head", r"what each head does over (\S+) English", r"and over (ten thousand)"),
    ),
}  # fmt: skip
"""what is counted -> how many there are, and how texts say it"""


@cache
def texts() -> tuple[tuple[str, str], ...]:
    """Where people read, and what."""
    files = [*ROOT.glob("*.md"), ROOT / "pages/pages.toml", *ROOT.glob("docs/*.md"), *ROOT.glob("checkpoints/*/*.md")]
    files += [path for kind in ("md", "toml", "po") for path in ROOT.glob(f"pages/text/**/*.{kind}")]
    files += ROOT.glob("pages/lessons/*.toml")
    return tuple((path.relative_to(ROOT).as_posix(), path.read_text("utf-8")) for path in sorted(files))


def written(count: int) -> set[str]:
    """A number in digits and in words, in lower case."""
    ones = dict(enumerate(zip(ENGLISH.split(), GERMAN.split(), strict=True), start=1))
    tens, rest = divmod(count, 10)
    words = {str(count), f"{count:,}", f"{count:,}".replace(",", "."), *ones.get(count, ())}
    if 20 < count < 30:
        words |= {f"twenty-{ones[rest][0]}", f"{ones[rest][1].removesuffix('s')}undzwanzig"}
    if 10 <= count < 30:
        words.add(f"{CHINESE[tens] if tens > 1 else ''}十{CHINESE[rest] if rest else ''}")
    return words | ({"ten thousand"} if count == 10_000 else set())


@pytest.mark.parametrize("what", COUNTED)
def test_a_count_in_a_text_is_of_what_it_counts(what: str) -> None:
    count, patterns = COUNTED[what]
    found = [
        (where, match[1].rpartition('"')[2].casefold())
        for where, text in texts()
        for pattern in patterns
        # From the beginnings of words alone: from all of their letters it takes ten times as long.
        for match in re.finditer(re.sub(r"^\(\\S", r"(?<!\\S)(\\S", pattern), text)
    ]
    assert found
    assert [one for one in found if one[1] not in written(count())] == []


def test_every_pattern_finds_what_it_is_for() -> None:
    whole = "\n".join(text for _, text in texts())
    assert [one for _, patterns in COUNTED.values() for one in patterns if not re.search(one, whole)] == []
