"""The messages of a language, in gettext's format: pages/text/LANG/texts.po (Markdown), lessons.po (with the glossary).

Catalogues are read as they are, because the standard library's gettext reads only compiled ones, and a step that
compiles could be forgotten. docs/translating.md says what stands here and what in strings.toml, and why.
"""

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

TEXT = Path(__file__).parent
DOMAINS = "texts", "lessons"
"""the catalogues of a language, by the names of their files"""
ALSO = "also"
"""context of the names by which the search finds a section, a term or a station, too; the message is its place"""
_LINE = re.compile(r'(?:(msgctxt|msgid|msgstr)\s+)?"([^"\\]*(?:\\[nt"\\][^"\\]*)*)"')
_ESCAPED = {"n": "\n", "t": "\t"}


@dataclass(frozen=True)
class Message:
    """A sentence with its facts, as the English has it and as a language has it."""

    english: str
    own: str
    """empty where it is not translated yet"""
    context: str = ""
    """the place where the language says it in another way than elsewhere, or `ALSO`"""
    is_fuzzy: bool = False
    """whether its English has changed since, or nobody has looked at it"""


@cache
def messages(code: str, domain: str) -> Mapping[tuple[str, str], str]:
    """Context and English -> the same in the language; without those that are fuzzy, because their facts may be gone.

    Read once a process. Of a catalogue that cannot be read nothing is known, and the log says why.
    """
    path = TEXT / code / f"{domain}.po"
    try:
        found = [*read_catalogue(path)] if path.is_file() else []
    except ValueError as error:
        logging.getLogger(__name__).error("%s Until then these texts are English.", error)
        found = []
    return MappingProxyType({(one.context, one.english): one.own for one in found if one.own and not one.is_fuzzy})


def translation(code: str, domain: str, english: str, place: str = "") -> str | None:
    """A message in the language, as at this place if it is said in another way there; None where it is missing."""
    known = messages(code, domain)
    return known.get((place, english)) or known.get(("", english))


def other_names(code: str, domain: str, place: str) -> tuple[str, ...]:
    """Names in the language by which the search finds what stands at this place."""
    return tuple(filter(None, messages(code, domain).get((ALSO, place), "").split("; ")))


def read_catalogue(path: Path) -> Iterator[Message]:
    """The messages of a file, without its head.

    Raises:
        ValueError: it is no catalogue; names the file and the line.
    """
    parts: dict[str, str] = {}
    is_fuzzy, known = False, set()
    for number, line in enumerate([*path.read_text(encoding="utf-8-sig").split("\n"), ""], 1):
        found = _LINE.fullmatch(line.strip())
        if "msgstr" in parts and not (found and not found[1]):
            key = parts.get("msgctxt", ""), parts["msgid"]
            if key in known:
                raise _malformed(path, number - 1, "this message stands above, too")
            known.add(key)
            if parts["msgid"]:
                yield Message(parts["msgid"], parts["msgstr"], key[0], is_fuzzy)
            parts, is_fuzzy = {}, False
        if found:
            _add_line(parts, found, path, number)
        elif line.startswith("#,"):
            is_fuzzy = "fuzzy" in line
        elif line.strip() and not line.startswith("#"):
            raise _malformed(path, number, 'expected a comment, or msgctxt, msgid or msgstr with a text in "…"')
    if parts:
        raise _malformed(path, number - 1, "the last message has no msgstr")


def _add_line(parts: dict[str, str], found: re.Match, path: Path, number: int) -> None:
    """Begin a part of a message, or go on with the last one."""
    name, text = found.groups()
    if name in parts or (name == "msgstr" and "msgid" not in parts) or not (name or parts):
        raise _malformed(path, number, f"{name or 'a text'} has no place here")
    name = name or [*parts][-1]
    parts[name] = parts.get(name, "") + re.sub(r"\\(.)", lambda sign: _ESCAPED.get(sign[1], sign[1]), text)


def _malformed(path: Path, line: int, what: str) -> ValueError:
    return ValueError(f"pages/text/{path.parent.name}/{path.name}, line {line}: {what}.")
