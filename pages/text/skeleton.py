"""A text as a skeleton with messages: what the program decides, and the sentences that each language says its own way.

`pieces` cuts a Markdown template; its pieces, one after the other, are the template again. A message is a line of words
without its mark (`> `, `- `, `::: closed`), or the words of a picture or a link. An `{% if %}` that ends in its line
stays in the message, so that a language may have other cases there; a loop is the skeleton's, and what it repeats is a
message.
"""

import re
from collections.abc import Callable, Iterator

TAG = re.compile(r"\{[{%].*?[%}]\}|^% .*$", re.MULTILINE)
"""what jinja2 reads: facts and statements"""
_TAG = re.compile(r"(\{%-? *(\w+).*?-?%\}|\{#.*?#\})")
_FACT = r"\{[{%].*?[%}]\}"
_MARK = re.compile(r"(?:> ?|\[!NOTE\] |(?:[-*+]|\d+\.|#{2,}) +)*")
"""of a caption, a note, a list, a small heading"""
_TERMS = re.compile(r"\s*\[\?\]\(glossary:[^)]+\)$")
_PICTURE = re.compile(rf'(!\[)((?:{_FACT}|[^\]])*)(\]\((?:{_FACT}|[^\s)])+)(?:( ")((?:{_FACT}|[^"])*)("))?(\))')
_LINK = re.compile(r"(\[)((?:\\.|[^\]\\])+)(\]\([^)\s:]+\))")
_FRAME = re.compile(r"(::: \w+ ?)(.*)")
_NO_WORDS = re.compile(r"\{\{(?:(?!plural|join).)*?\}\}|\{%.*?%\}|\]\(.*?\)")
_WORDS = re.compile(r"[A-Za-z]{2}|[.:] *(?:[*]|$)|(?<!\\)[“,;]")
_IN_FORMULA = re.compile(r"\\(?:text|mathrm)\{|\d\.\d")


def pieces(source: str) -> Iterator[tuple[bool, str]]:
    """Whether it is a message, and its text: for all pieces of a template."""
    verbatim = ""  # the mark that ends a formula or lines of code
    for line in re.findall(r".*\n|.+", source):
        opened = verbatim or next((mark for mark in ("$$", "```") if line.startswith(mark)), "")
        is_set = line.startswith("{% set ")
        if line.startswith(("% ", "# ", "---", "{#")) or line.strip() in ("", "```", ":::"):
            yield False, line
        elif opened == "$$" and not is_set:
            yield from _stripped(line, _IN_FORMULA)
        elif opened and not is_set:
            yield from _stripped(line)
        else:
            for is_text, part in _untagged(line):
                yield from _words(part) if is_text else [(False, part)]
        ends = opened and line.rstrip().endswith(opened) and (verbatim or len(line.strip()) > 2 * len(opened))
        verbatim = "" if ends else opened


def translated(source: str, say: Callable[[str], str]) -> str:
    """The template with its messages as `say` has them."""
    return "".join(say(part) if is_message else part for is_message, part in pieces(source))


def _stripped(text: str, words: re.Pattern = _WORDS) -> Iterator[tuple[bool, str]]:
    """A text that is a message where it has words, and the space around it."""
    if not words.search(text if words is _IN_FORMULA else _NO_WORDS.sub("", text.strip())):
        yield False, text
        return
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    yield from ((False, text[:start]), (True, text[start:end]), (False, text[end:]))


def _untagged(line: str) -> Iterator[tuple[bool, str]]:
    """The line without loops, and without those tags whose partner stands in another line."""
    parts = _TAG.split(line)
    outside, opened = set(), []
    for at in range(1, len(parts), 3):
        match parts[at + 1]:
            case "if":
                opened.append(at)
            case "endif" if opened:
                opened.pop()
            case "else" | "elif" | None if opened:
                pass
            case _:
                outside |= {at, *opened}
    outside |= {*opened}
    text = ""
    for at in range(0, len(parts), 3):
        text += parts[at]
        if at + 1 in outside:
            yield from ((True, text), (False, parts[at + 1]))
            text = ""
        elif at + 1 < len(parts):
            text += parts[at + 1]
    yield True, text


def _words(text: str) -> Iterator[tuple[bool, str]]:
    """What may be words, and the marks around it."""
    if frame := _FRAME.match(text):
        yield False, frame[1]
        yield from _stripped(text[frame.end(1) :])
    elif text.lstrip().startswith("!["):
        yield from _inside(_PICTURE, (2, 5), text)
    elif _LINK.fullmatch(text.strip()):
        yield from _inside(_LINK, (2,), text)
    else:
        start = _MARK.match(text).end()
        end = max(start, found.start()) if (found := _TERMS.search(text.rstrip())) else len(text)
        yield False, text[:start]
        yield from _stripped(text[start:end])
        yield False, text[end:]


def _inside(pattern: re.Pattern, groups: tuple[int, ...], text: str) -> Iterator[tuple[bool, str]]:
    at = 0
    for found in pattern.finditer(text):
        for group in groups:
            if found[group]:
                yield False, text[at : found.start(group)]
                yield from _stripped(found[group])
                at = found.end(group)
    yield False, text[at:]
