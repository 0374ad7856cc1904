"""The words of the app: English here, another language in a folder of its own, which has what is translated so far.

docs/translating.md says how one is added. A section of a text, a term and a station name the English that they were
translated from by `stamp`, so that `python -m pages.text.check LANG` finds what has changed since.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from model.language import ENGLISH, Language, language

TEXT = Path(__file__).parent
STRINGS = "strings.toml"
"""the file that makes a folder a language"""
LABELS = "labels"
"""its table of the words in pictures and tables"""
WORDS = ("name", "others", "title", "about", "text", "do", "look_for", "ask", "hints", "options", "answer", "otherwise",
         "further")  # fmt: skip
"""fields of terms, lessons, stations and questions that are translated"""
FROM = "from"
"""the field with the stamp of the English"""
ALSO = "also"
"""the field with names by which the search finds an entry, too: never shown, and each language has its own"""
NAMES = re.compile(r"^\{# also: (.*?) #\}\n", re.MULTILINE)
"""the same of a section, in the line below its title: `{# also: warmup; warming up #}`"""
LESSON = "lesson"
"""key of a lesson's title and subject, beside those of its stations"""
_STAMP = re.compile(r"\A\s*\{# from (\w+) #\}[ \t]*\n?")


class Translated(str):
    """A text in the language of its folder."""


@cache
def languages() -> Mapping[str, Language]:
    """Every language by its code, English first."""
    found = (read_language(folder) for folder in sorted(TEXT.iterdir()) if (folder / STRINGS).is_file())
    return MappingProxyType({ENGLISH.code: ENGLISH} | {one.code: one for one in found})


def read_language(folder: Path) -> Language:
    """The language of a folder, with its short texts."""
    file = tomllib.loads((folder / STRINGS).read_text(encoding="utf-8"))
    texts = {name: MappingProxyType(file.get(name, {})) for name in ("strings", LABELS)}
    return Language(folder.name, **texts, **file["language"])


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


def stamp(text: str) -> str:
    """Of an English text, by which a change of it is noticed."""
    return hashlib.sha256(NAMES.sub("", text).strip().encode()).hexdigest()[:8]


def stamp_of(entry: Mapping[str, Any]) -> str:
    """The same of the words of a term, a lesson, a station or a question."""
    return stamp(json.dumps(words_of(entry), ensure_ascii=False, sort_keys=True))


def words_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an entry that are translated; options without a place are numbers to compute."""
    return {name: entry[name] for name in WORDS if name in entry and (name != "options" or "place" in entry)}


def split_stamp(section: str) -> tuple[str, str]:
    """The stamp at the beginning of a translated section, empty if there is none; and the section without it."""
    found = _STAMP.match(section)
    return (found[1], section[found.end() :]) if found else ("", section)


def translate_entry(entry: Mapping[str, Any], file: str, key: str) -> dict[str, Any]:
    """A term, a lesson, a station or a question with its words in the language of this run, all of them or none.

    Args:
        entry: in English.
        file: of the language's folder.
        key: of the entry in it.
    """
    own = _entries(language().code, file).get(key, {})
    words, also = words_of(entry), tuple(dict.fromkeys([*own.get(ALSO, ()), *entry.get(ALSO, ())]))
    if not {*words} - {"others"} <= {*own}:
        own = {}
    return dict(entry) | {name: _marked(own[name]) for name in words if name in own} | ({ALSO: also} if also else {})


def _marked(words: str | list[str]) -> Any:
    return Translated(words) if isinstance(words, str) else [Translated(one) for one in words]


@cache
def _entries(code: str, file: str) -> Mapping[str, Mapping[str, Any]]:
    path = TEXT / code / file
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
