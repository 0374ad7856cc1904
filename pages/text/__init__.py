"""The words of the app: English here, another language in a folder of its own, which has what is translated so far.

docs/translating.md says how one is added, and what stands where.
"""

import logging
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from model.beside import read_beside
from model.language import ENGLISH, Language, language
from pages.text.catalogue import ALSO, TEXT, other_names, translation
from pages.text.skeleton import pieces, translated

STRINGS = "strings.toml"
"""the file that makes a folder a language"""
SAYS_OF_ITSELF = {"name", "decimal", "group", "percent", "quotes", "units"}
"""its table [language]"""
LABELS = "labels"
"""its table of the words in pictures and tables"""
WORDS = ("name", "others", "title", "about", "text", "do", "look_for", "ask", "hints", "options", "answer", "otherwise",
         "further")  # fmt: skip
"""fields of terms, lessons, stations and questions that are translated"""
NAMES = re.compile(r"^\{# also: (.*?) #\}\n", re.MULTILINE)
"""names by which the search finds a section, too, in the line below its title: `{# also: warmup; warming up #}`"""
LESSON = "lesson"
"""key of a lesson's title and subject, beside those of its stations"""


class Translated(str):
    """A text in the language of its folder."""


@cache
def languages() -> Mapping[str, Language]:
    """Every language by its code, English first; one whose file cannot be read is left out, and the log says why."""
    found = {ENGLISH.code: ENGLISH}
    for folder in sorted(TEXT.iterdir()):
        if (folder / STRINGS).is_file():
            try:
                found[folder.name] = read_language(folder)
            except ValueError as error:
                logging.getLogger(__name__).error("%s Until then this language is not offered.", error)
    return MappingProxyType(found)


def read_language(folder: Path) -> Language:
    """The language of a folder, with its short texts.

    Raises:
        ValueError: the file does not say what the language is, or is no TOML.
    """
    path = f"pages/text/{folder.name}/{STRINGS}"
    try:
        file = tomllib.loads((folder / STRINGS).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} cannot be read: {error}.") from error
    texts = {name: MappingProxyType(file.get(name, {})) for name in ("strings", LABELS)}
    own = file.get("language", {})
    if "name" not in own or not {*own} <= SAYS_OF_ITSELF:
        raise ValueError(
            f'{path} needs a table [language] with the language\'s name, as `name = "Deutsch"`, and may say '
            f"{', '.join(sorted(SAYS_OF_ITSELF - {'name'}))} there, and nothing else."
        )
    return Language(folder.name, **texts, **own)


def best_language(asked: str | None, *preferred: str | None) -> Language:
    """The one that is asked for by its code; else the first that the browser prefers, such as de-AT; else English."""
    for code in (asked, *preferred):
        if code and (one := languages().get(code.split("-")[0].casefold())):
            return one
    return ENGLISH


def sections_of(text: str) -> dict[str, str]:
    """The sections of a text by title; what stands above the first has the title ""."""
    head, *parts = re.split(r"^# (.+)\n", text, flags=re.MULTILINE)
    return {"": head} | dict(zip(parts[::2], parts[1::2], strict=True))


def names_in(table: str) -> Mapping[str, str]:
    """Names of the code, and what each is called in English: a table of names.toml."""
    return next(tables[table] for tables in read_beside(__file__, "names").values() if table in tables)


def words_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an entry that are translated; options without a place are numbers to compute."""
    return {name: entry[name] for name in WORDS if name in entry and (name != "options" or "place" in entry)}


def translate_entry(entry: Mapping[str, Any], file: str, key: str) -> dict[str, Any]:
    """A term, a lesson, a station or a question in the language of this run; a field that this lacks is English.

    `file` is the entry's own, in which it has this key.
    """
    code, own = language().code, {}
    for name, words in words_of(entry).items():
        said = [_said(code, text, f"{file}: {key}: {name}") for text in texts_of(name, words)]
        own[name] = said[0].split("; ") if name == "others" else said if isinstance(words, list) else said[0]
    also = dict.fromkeys((*other_names(code, "lessons", f"{file}: {key}"), *entry.get(ALSO, ())))
    return {**entry, **own, **({ALSO: (*also,)} if also else {})}


def texts_of(name: str, words: str | list[str]) -> list[str]:
    """What a field of an entry says; the other names of a term are one text, because each language has its own."""
    return ["; ".join(words)] if name == "others" else words if isinstance(words, list) else [words]


def _said(code: str, english: str, place: str) -> str:
    """A text in the language, if that has all of its messages."""
    own = {text: translation(code, "lessons", text, place) for is_message, text in pieces(english) if is_message}
    return english if None in own.values() else Translated(translated(english, own.__getitem__))
