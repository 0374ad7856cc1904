"""The full text of all entries in SQLite's index (FTS5), and what is found in it, the best first.

An index is bytes: whoever searches opens them as a database of their own, so that threads share no connection.
"""

import difflib
import re
import sqlite3
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from model.language import ENGLISH, language, later, speaking, tr
from pages.frame.bar.said import Entry, entries

START, END = "\ue000", "\ue001"
"""around each name, so that a whole one is told from a part of one; letters of private use, which nobody types"""
SCORE = "4 * bm25(said, 1, 0, 0) + 0.7 * bm25(said, 0, 1, 0) + bm25(said, 0, 0, 1)"
"""of a find in the names, in the titles of the place and in the text, each by itself: one that is often in a text does
not outweigh a name"""
SORTS: Mapping[str, float] = {
    "Page": 1.2,
    "Word": 1.1,
    "Lesson": 0.9,
    "Question": 0.8,
    "Passage": 0.7,
    "Picture": 0.7,
    "Row": 0.7,
}
"""how much more, or less, a find counts in an entry of this sort"""
FOREIGN = 0.9
"""the same of an entry in English, where another language is spoken"""
CLOSE = 0.7
"""how alike a mistyped word is, from 0 to 1"""
SHORTEST_START = 3
"""letters of a word that may be the beginning of another one"""
LINE = 110
"""characters that are shown around a find"""
CJK = "\u3040-\u30ff\u3400-\u9fff"
"""letters of languages that put no space between words"""
ASKING = later(
    "a an and are at be can could do does did for from get gets has have how i if in into is it its mean means of on "
    "or should so than that the their then there this to was we what when where which who whom why will with work "
    "works would you your happens need needs"
)
"""words of a question that say nothing about what is asked; each language has its own"""
_FOLDS = (
    (re.compile(r"√"), " sqrt "),
    (re.compile("[α-ω]"), lambda letter: unicodedata.name(letter[0]).split()[-1].casefold()),
    (re.compile(r"(?<=[a-z0-9])[_^](?=[a-z0-9])|(?<=\d)[,.](?=\d{3}\b)"), ""),
    (re.compile(r"ł"), "l"),
    (re.compile(r"(?<=\w\w\w)(i|y)s(?=ations?\b|e[drs]?\b|ers\b|ing\b)"), r"\1z"),
    (re.compile(r"(?<=\w\w\w)our(?=s?\b|ed\b|ing\b)"), "or"),
)
"""what is written in two ways is read in one: √ and sqrt, τ and tau, d_k and dk, 10,000 and 10000, -ise and -ize"""
_JOINED = re.compile(r"\b(\w+)-(\w+(?:-\w+)*)\b|\b([A-Z]?[a-z]+)([A-Z]\w*)\b")
"""a word that is also written as one or as two: warm-up, LayerNorm"""


class NoFullText(Exception):
    """SQLite, as this Python has it, lacks what the search needs."""


@dataclass(frozen=True)
class Index:
    """All entries of a language and of English, and SQLite's index of them."""

    entries: tuple[Entry, ...]
    database: bytes
    names: Mapping[str, str]
    """every name as it is compared -> as it is written"""

    def search(self, typed: str) -> tuple[list[Entry], list[str] | None]:
        """What is found, the best first and each place once; and the names that a word which is nowhere may mean, None
        where every word is somewhere.
        """
        asked = words_of(typed)
        if not asked:
            return [], None if not typed.strip() else []
        with closing(sqlite3.connect(":memory:")) as database:
            database.deserialize(self.database)
            every = " ".join(word for words in asked for word in words)
            found = self._ranked(database, f'names : "{START} {every} {END}"')
            # Words of one stem are told apart: parallel is not parallelism.
            found.sort(key=lambda entry: (_is_called(entry, every), self._weight(entry)), reverse=True)
            asking = _asking()
            some = [words for words in asked if words[0] not in asking] or asked
            found += self._ranked(database, f'names : "{START} {every}" * OR ({" AND ".join(map(_beginning, some))})')
            known = all(self._ranked(database, _beginning(words)) for words in some)
            if len(some) > 1 or any(len(words) > 1 for words in some):
                single = (word for words in some for word in words)
                found += self._ranked(database, " OR ".join(_beginning([word]) for word in single))
        first: dict[tuple[tuple[str, ...], str], Entry] = {}
        for entry in found:
            first.setdefault((entry.place, entry.key), entry)
        return list(first.values()), None if known else self._alike(typed)

    def _ranked(self, database: sqlite3.Connection, wanted: str) -> list[Entry]:
        rows = database.execute(f"SELECT rowid, {SCORE} FROM said WHERE said MATCH ?", (wanted,))
        found = [(score * self._weight(self.entries[row]), row) for row, score in rows]
        return [self.entries[row] for _, row in sorted(found)]

    def _weight(self, entry: Entry) -> float:
        return SORTS.get(entry.sort, 1.0) * (FOREIGN if entry.foreign else 1.0)

    def _alike(self, typed: str) -> list[str]:
        close = difflib.get_close_matches(" ".join(typed.casefold().split()), self.names, n=3, cutoff=CLOSE)
        return list(dict.fromkeys(self.names[name] for name in close))


def build_index() -> Index:
    """That of the language of this run.

    Raises:
        NoFullText: SQLite has no FTS5, or cannot turn a database into bytes.
    """
    own = tuple(entries())
    if language() != ENGLISH:
        with speaking(ENGLISH):
            english = tuple(entries())
        shown = {entry.place: entry.titles for entry in own}
        own += tuple(replace(one, foreign=True, titles=shown.get(one.place, one.titles)) for one in english)
    names = {name.casefold(): name for entry in own if entry.sort != "Passage" for name in (entry.name, *entry.others)}
    try:
        with closing(sqlite3.connect(":memory:")) as database:
            tokenize = "porter unicode61 remove_diacritics 2"
            database.execute(
                f"CREATE VIRTUAL TABLE said USING fts5(names, titles, text, content='', tokenize='{tokenize}')"
            )
            rows = ((number, *_folded(entry)) for number, entry in enumerate(own))
            database.executemany("INSERT INTO said(rowid, names, titles, text) VALUES (?, ?, ?, ?)", rows)
            database.execute("INSERT INTO said(said) VALUES ('optimize')")
            database.commit()
            return Index(own, database.serialize(), names)
    except (sqlite3.OperationalError, AttributeError) as error:
        raise NoFullText from error


def _folded(entry: Entry) -> tuple[str, str, str]:
    named = (form for name in (entry.name, *entry.others) for form in _forms(name))
    text = "\n".join(entry.lines)
    forms = (form for found in _JOINED.finditer(text) for form in _forms(found[0])[1:])
    names = " ".join(f"{START} {form} {END}" for form in dict.fromkeys(named))
    return names, fold(" ".join(entry.titles)), f"{fold(text)} {' '.join(forms)}"


def _is_called(entry: Entry, words: str) -> bool:
    return any(words in _forms(name) for name in (entry.name, *entry.others))


def _forms(name: str) -> list[str]:
    """A name as it is compared; then with its parts as one word, and as several."""
    whole = _JOINED.sub(lambda found: found[0].replace("-", ""), name)
    parts = _JOINED.sub(lambda found: f"{found[3]} {found[4]}" if found[3] else found[0], name)
    return [" ".join(re.findall(r"\w+", fold(form))) for form in (name, whole, parts)]


def fold(text: str) -> str:
    """The text as it is compared: one way to write what has several, and Chinese as overlapping pairs of characters."""
    text = unicodedata.normalize("NFKC", text).casefold()
    for pattern, instead in _FOLDS:
        text = pattern.sub(instead, text)
    return _RUN.sub(lambda run: f" {' '.join(_pairs(run[0]))} ", text)


_RUN = re.compile(f"[{CJK}]+")


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def words_of(typed: str) -> list[list[str]]:
    """The words that somebody has typed, each as the words that it is compared by."""
    without = sorted(filter(_RUN.search, _asking()), key=len, reverse=True)
    plain = re.sub("|".join(without), " ", typed) if without else typed
    typed = plain if _RUN.search(plain) else typed
    return [words for word in typed.split() if (words := re.findall(r"\w+", fold(word)))]


def _asking() -> frozenset[str]:
    return frozenset(f"{ASKING} {tr(ASKING)}".split())


def _beginning(words: Sequence[str]) -> str:
    """FTS5 for these words one after another, of which the last may be the beginning of a longer one."""
    phrase = f'"{" ".join(words)}"'
    may_go_on = len(words[-1]) >= SHORTEST_START or (len(words) == 1 and bool(_RUN.fullmatch(words[0])))
    return f"({phrase} OR {phrase} *)" if may_go_on else phrase


def line_around(entry: Entry, typed: str) -> tuple[str, str, str]:
    """A line of what an entry says: what comes before a word that was typed, the word, and what comes after it.

    Where no line has a word as it was typed, the line is the first one, and has no such word.
    """
    stems = [_stem(word) for words in words_of(typed) if words[0] not in _asking() for word in words]
    patterns = [
        re.compile(f"{re.escape(stem)}" if _RUN.match(stem) else rf"\b{re.escape(stem)}\w*", re.I) for stem in stems
    ]
    lines = [line for line in entry.lines if line != entry.titles[-1]] or [""]
    line = max(lines, key=lambda line: sum(bool(pattern.search(line)) for pattern in patterns))
    finds = (found for pattern in patterns if (found := pattern.search(line)))
    start, end = min((found.span() for found in finds), default=(0, 0))
    first = max(0, line.rfind(" ", 0, max(0, start - LINE // 3)) + 1) if start > LINE // 3 else 0
    last = max(end, first + LINE)
    last = last if last >= len(line) else max(line.rfind(" ", end, last), end) if " " in line[end:last] else last
    rest = line[end:last]
    return ("… " if first else "") + line[first:start], line[start:end], rest + (" …" if last < len(line) else "")


def _stem(word: str) -> str:
    """The beginning that most forms of a word have in common."""
    return word if len(word) < 5 else word[: max(4, len(word) - 3)]
