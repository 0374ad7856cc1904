"""The language of what is on screen: one of a visitor's run, never of the process.

English stands in the code: `tr("Layer")`, `tr("{count:,} tokens", count=count)`. What a language has instead stands in
pages/text/LANG/strings.toml, by the English; what it lacks there stays English as a whole. A place that cannot know the
language, as the model, says `sentence(...)` or raises `Refusal(...)`: English, with its template and facts for `tr`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from functools import reduce, wraps
from string import Formatter
from typing import Any


@dataclass(frozen=True)
class Language:
    """A language: how it writes numbers, and its words for the English ones."""

    code: str = "en"
    """in links and as the name of its folder; of BCP 47, for the page's `lang`"""
    name: str = "English"
    """in the language itself"""
    decimal: str = "."
    group: str = ","
    """between thousands"""
    strings: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """English -> the same in this language"""
    labels: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """the same of the words in pictures and tables, with {} for a number"""
    percent: str = "%"
    """the sign, with what comes before it"""
    quotes: str = "“”"
    """the opening and the closing quotation mark"""
    units: Sequence[tuple[float, str]] = field(default=(), repr=False, compare=False)
    """its words for large counts, the largest first, and how many one is; empty: k, M, G and T"""

    def number(self, text: str) -> str:
        """A number that Python has formatted, as the language writes it; "2.84 M" may be "2,84 Mio." or "284 万"."""
        if self.units and (found := _COUNT.fullmatch(text)):
            value = float(found[1].replace(",", "")) * 1000 ** ("kMGT".index(found[2]) + 1)
            size, unit = next((each for each in self.units if value >= each[0]), self.units[-1])
            return f"{self.number(f'{value / size:,.4g}')} {unit}"
        return printed(text.translate({ord("."): self.decimal, ord(","): self.group, ord("%"): self.percent}))


_COUNT = re.compile(r"([\d.,]+) ([kMGT])")
_POWER = re.compile(r"(?<![\w.,])(\d[\d.,]*)e([+−-]?)0*(\d+)(?!\w)")
_RAISED = str.maketrans("+−-0123456789", "⁺⁻⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def printed(text: str) -> str:
    """A number that Python has formatted, with a power of ten as in print: 3.3e+18 is 3.3 · 10¹⁸, 1e-09 is 10⁻⁹."""
    return _POWER.sub(lambda found: _times(found[1]) + (found[2].strip("+") + found[3]).translate(_RAISED), text)


def _times(mantissa: str) -> str:
    return "10" if mantissa == "1" else f"{mantissa} · 10"


ENGLISH = Language()
WIDE_MARKS = "。，；：！？、）"
"""punctuation of Chinese, which has its space in itself"""
_current: ContextVar[Language] = ContextVar("language", default=ENGLISH)


class Sentence(str):
    """A sentence in English, which can be said in another language."""

    template: str
    facts: Mapping[str, Any]


class Numeral(str):
    """A number that is written as Python writes it, such as "−1.25" or "13.5 M"; a language has signs of its own."""


def sentence(template: str, /, **facts: Any) -> Sentence:
    """A sentence with its facts: placeholders as `str.format` has them, with names."""
    made = Sentence(_fill(template, facts, ENGLISH))
    made.template, made.facts = template, facts
    return made


class Refusal(ValueError):
    """An error that every language can say: of a template and its facts, or of a sentence that is made already."""

    def __init__(self, text: str, /, **facts: Any) -> None:
        super().__init__(text if isinstance(text, Sentence) else sentence(text, **facts))


def tr(text: str, /, **facts: Any) -> str:
    """The text in the language of this run, with its facts.

    Args:
        text: English; a literal, so that a program can list what is to be translated. Or a `Sentence`, or a word that
            is such a literal elsewhere.
        facts: by the names of its placeholders; numbers are written as the language writes them, and sentences, and
            members of a StrEnum, are said in it.
    """
    if isinstance(text, Numeral):
        return language().number(text)
    if isinstance(text, Sentence) and not facts:
        text, facts = text.template, dict(text.facts)
    spoken = language()
    known = spoken.strings.get(text)
    return _fill(known or str(text), facts, spoken if known or not has_words(text) else ENGLISH)


def has_words(text: str) -> bool:
    """Whether there is anything to translate around the placeholders."""
    return bool(re.search("[A-Za-z]{2}", re.sub(r"\{[^}]*\}", "", text)))


def sentence_of(error: Exception) -> str:
    """What an error says, to be said by `tr` or by a text; English where it was raised with a plain text."""
    return error.args[0] if error.args and isinstance(error.args[0], Sentence) else str(error)


def tr_error(error: Exception) -> str:
    """The same in the language of this run."""
    return tr(sentence_of(error))


def later(text: str) -> str:
    """The English text itself, to be said by `tr` where it is shown: for what a module names before any run."""
    return text


def joined(parts: Iterable[Any], last_two: str = later("{before} and {one}")) -> Sentence:
    """Sentences, numbers, words or members of a StrEnum, one after the other: "1, 2 and 4"; there is at least one."""
    *first, last = parts
    return sentence(last_two, before=series(first), one=last) if first else series([last])


def series(parts: Iterable[Any], two: str = later("{before}, {one}")) -> Sentence:
    """The same without a last word: "1, 2, 4"."""
    first, *others = parts
    start = sentence("{one}", one=first) if isinstance(first, Numeral) else first
    start = start if isinstance(start, Sentence) else sentence(str(start))
    return reduce(lambda before, one: sentence(two, before=before, one=one), others, start)


def listed(parts: Iterable[Any]) -> str:
    """The same in the language of this run."""
    return tr(joined(parts))


def in_a_row(*sentences: str) -> str:
    """Sentences that are said already, with a space between two unless the first ends with a wide mark."""
    return re.sub(f"(?<=[{WIDE_MARKS}]) ", "", " ".join(sentences))


def language() -> Language:
    """That of this run; English where nothing was said."""
    return _current.get()


def speak(one: Language) -> None:
    """From here to the end of the run, or to the next `speak`."""
    _current.set(one)


@contextmanager
def speaking(one: Language) -> Iterator[None]:
    """Inside the block."""
    before = _current.set(one)
    try:
        yield
    finally:
        _current.reset(before)


def quoted(text: str) -> str:
    """The text in the quotation marks of this run's language."""
    opening, closing = language().quotes
    return f"{opening}{text}{closing}"


def in_this_language(function: Callable) -> Callable:
    """The function, for when it is called later, without the run that has said the language."""
    now = language()

    @wraps(function)
    def later(*args: Any, **more: Any) -> Any:
        with speaking(now):
            return function(*args, **more)

    return later


def _fill(template: str, facts: Mapping[str, Any], spoken: Language) -> str:
    return _Filling(spoken).vformat(template, (), facts) if facts else template


class _Filling(Formatter):
    def __init__(self, spoken: Language) -> None:
        self.spoken = spoken

    def format_field(self, value: Any, form: str) -> str:
        if isinstance(value, Sentence | StrEnum):
            with speaking(self.spoken):
                return format(tr(value), form)
        text = format(value, form)
        if not isinstance(value, int | float | Numeral):
            return text
        return self.spoken.number(text.replace("-", "−", 1) if text.startswith("-") else text)
