"""The words of views, from pages/text/PAGE.md: Markdown with the facts of a `Result` filled in by jinja2.

A section `# Title` is the text of the view of this title, in the order of the page. What Markdown calls an image,
`![What it shows](name "Title")`, is the picture or table of that name; two in a paragraph stand side by side. `> ` is a
caption, `> [!NOTE]` a note, `$$` a formula, `[label](?key=value)` alone a button that sets controls, `[label](page)`
alone a link to a page (with `?checkpoint=name` one that opens a new visit), `[?](glossary:word, word)` at the end of a
paragraph its tooltip. `::: box` to `:::` is a frame, `::: explained` one around formula and paper, which is closed from
the second visit on, `::: closed A title` one that a click opens, `::: offer` a frame with a button that opens a model
which has what this one lacks, `::: controls` the place of the controls, if it is not the top, and `::: request` that of
the button for work on request, if it is not below them. `:green[words]`, also with orange and red, have this colour on
the page.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any
from urllib.parse import parse_qsl

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template, Undefined
from markupsafe import Markup

from model.language import ENGLISH, WIDE_MARKS, Language, Numeral, Sentence, language, speaking, tr
from pages.text import NAMES, TEXT, Translated, sections_of
from pages.text.catalogue import other_names, translation
from pages.text.skeleton import translated
from viz.labels import say_label
from viz.latex import error_text, number, scaled_scores
from viz.tokens import as_markdown, labels

PLACES = "controls", "request"
FRAMES = "box", "explained", "offer", "closed", *PLACES


_STATEMENT = re.compile(r"^(?:% (.+)|(\{% set .+ %\}))\n", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A piece of a view's text."""

    kind: str
    """text, caption, note, formula, plain, shows, button, link, rule, controls, request; box, explained, offer and
    closed hold others"""
    text: str = ""
    items: tuple[Any, ...] = ()
    """of shows: (name, alt, title) each; of button: (label, values); of frames: blocks"""
    terms: tuple[str, ...] = ()
    """of the glossary, for the tooltip"""

    @property
    def holds_blocks(self) -> bool:
        """True if it is a frame around others."""
        return self.kind in ("box", "explained", "offer", "closed")


def blocks_of(page: str, title: str, facts: Mapping[str, Any]) -> list[Block]:
    """The text of a view, with its facts: in the language of this run; a sentence that it lacks is English.

    Args:
        page: the text's file, without ending.
        title: of the section.
        facts: all that the text may name.

    Raises:
        jinja2.UndefinedError: the text names a fact that is not there.
        KeyError: there is no section of this title.
        ValueError: a paragraph mixes pictures with words, or a frame is left open.
    """
    return list(_parsed(section_text(page, title, facts), language()))


@lru_cache(maxsize=128)
def _parsed(text: str, _spoken: Language) -> tuple[Block, ...]:
    """The blocks of a text with its facts, which depend on how its language writes numbers; most runs change few."""
    return tuple(_blocks(iter(text.splitlines())))


def titles(page: str) -> list[str]:
    """Of the sections of a text, in its order."""
    return [*_sections(page)]


def section_text(page: str, title: str, facts: Mapping[str, Any]) -> str:
    """A section as Markdown, with its facts: in the language of this run; a sentence that it lacks is English."""
    return _compiled(section_template(page, title), language().code).render(facts)


def section_template(page: str, title: str) -> str:
    """The same as written, without facts."""
    return _sections(page, language().code)[title]


def names_of(page: str, title: str) -> tuple[str, ...]:
    """Other names of a section, by which the search finds it: in the language of this run, then in English."""
    english = (name for names in NAMES.findall(_sections(page)[title]) for name in names.split("; "))
    own = other_names(language().code, "texts", f"{page}.md: {title}")
    return tuple(dict.fromkeys((*own, *english)))


def pictures(blocks: list[Block]) -> Iterator[tuple[str, str, str]]:
    """Name, alt text and title of what the text shows, in its order."""
    for block in blocks:
        if block.kind == "shows":
            yield from block.items
        elif block.holds_blocks:
            yield from pictures(list(block.items))


def cited_sections(blocks: Iterable[Block]) -> list[str]:
    """Sections of the paper of 2017 that the text names where it links to it, such as "3.2.1", in its order."""
    sections: list[str] = []
    for block in blocks:
        if block.holds_blocks:
            sections += cited_sections(block.items)
        elif named := _SECTIONS.search(block.text):
            sections += re.findall(r"\d+(?:\.\d+)*", named[1])
    return list(dict.fromkeys(sections))


def fill(text: str, facts: Mapping[str, Any]) -> str:
    """A text that is no section of a page, with its facts filled in; raises what `blocks_of` raises of facts."""
    with speaking(language() if isinstance(text, Translated) else ENGLISH):
        return str(_compiled(_template(str(text)), ENGLISH.code).render(facts))


def evaluate(expression: str, facts: Mapping[str, Any]) -> Any:
    """The value of an expression in the same language, such as `n * d > 1000`."""
    return _expression(expression)(**facts)


@cache
def _compiled(text: str, code: str) -> Template:
    return _engine(code).from_string(text)


@cache
def _expression(expression: str) -> Callable[..., Any]:
    return _engine().compile_expression(expression, undefined_to_none=False)


@cache
def _sections(page: str, code: str = ENGLISH.code) -> Mapping[str, str]:
    """Those of a text by title; what stands above the first, as macros do, is also of each of them."""
    english = sections_of(_read(f"{page}.md"))
    parts = {title: _source(text, code, f"{page}.md: {title}") for title, text in english.items()}
    head = parts.pop("").strip()
    return {title: f"{head}\n{text}" for title, text in parts.items()}


def _read(name: str) -> str:
    return (TEXT / name).read_text(encoding="utf-8")


def _source(text: str, code: str, place: str) -> str:
    """A text in a language, as jinja2 reads it."""
    if code != ENGLISH.code:
        text = translated(text, lambda english: translation(code, "texts", english, place) or _in_english(english))
    return _template(text)


def _template(text: str) -> str:
    """A text for jinja2: a line `% if ...` or `{% set ... %}` is a statement, and leaves no line behind."""
    return _STATEMENT.sub(lambda line: line[2] or f"{{% {line[1]} %}}", text)


def _in_english(message: str) -> str:
    """A message that the language lacks, with its numbers as English writes them."""
    return f"{{% call in_english() %}}{message}{{% endcall %}}"


def _speak_english(caller: Callable[[], str]) -> str:
    with speaking(ENGLISH):
        return caller()


def _escaped(value: Any) -> Markup:
    """A fact as Markdown: plain text, because it may quote what a person typed."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, Sentence):
        value = tr(value)
    if isinstance(value, Numeral):
        value = language().number(value)
    return Markup(as_markdown(" ".join(value.split())) if isinstance(value, str) else value)


def _formatted(value: Any, form: str) -> Markup:
    """A number, with a true minus sign."""
    if isinstance(value, Undefined):
        str(value)  # raises, with the name of the fact
    text = re.sub("^-", "−", format(value, form))
    return Markup(text if isinstance(value, str) else language().number(text))


def _said(fact: str) -> str:
    """A fact that is a word: a text of the code, or a label of a picture or a table."""
    text = tr(fact)
    return say_label(fact) if text == fact else text


@cache
def _engine(code: str = ENGLISH.code) -> Environment:
    load = FunctionLoader(lambda name: _source(_read(name), code, f"{name}: "))
    engine = Environment(loader=load, undefined=StrictUndefined, autoescape=True, finalize=_escaped)
    engine.filters |= {
        "f": _formatted,
        "label": lambda token: labels([token])[0],
        "n": lambda value, digits=4: Markup(language().number(number(value, digits))),
        "error": lambda value: Markup(language().number(error_text(value))),
        "tex": lambda value: Markup(tr(value) if isinstance(value, Sentence) else value),
        "tr": _said,
        "plural": lambda count, one, several: one if count == 1 else several,
    }
    engine.globals |= {"scaled_scores": lambda *args: Markup(scaled_scores(*args)), "len": len}
    engine.globals |= {"spoken": code, "in_english": _speak_english}
    return engine


_IMAGE = re.compile(r'!\[([^\]]*)\]\((\S+?)(?: "([^"]*)")?\)')
_SECTIONS = re.compile(
    r"arxiv\.org/abs/1706\.03762\)[,，]? ?(?:sections?|Abschnitte?n?|第) ?((?:\d[\d.]*|, | and | und |、|和)+)"
)
_LINK = re.compile(r"\[((?:\\.|[^\]\\])+)\]\(([^)\s:]+)\)")
_TERMS = re.compile(r"\s*\[\?\]\(glossary:([^)]+)\)$")
_BREAK = re.compile(rf"(?<=[{WIDE_MARKS}])\n(?![-*+|#>] |\d+\. )")
"""where a browser would set a space for the end of a line, as between words of English; not before a list"""


def _blocks(lines: Iterator[str], frame: str = "") -> Iterator[Block]:
    """The blocks up to the end of the lines, or of the frame that these are in."""
    paragraph: list[str] = []
    for line in lines:
        if line.startswith(":::"):
            yield from _paragraph(paragraph)
            kind, _, title = line.removeprefix(":::").strip().partition(" ")
            if not kind:
                return
            if kind not in FRAMES:
                raise ValueError(f"::: {kind} is none of {', '.join(FRAMES)}")
            yield Block(kind, title, () if kind in PLACES else tuple(_blocks(lines, kind)))
        elif line.strip():
            paragraph.append(line)
        else:
            yield from _paragraph(paragraph)
    yield from _paragraph(paragraph)
    if frame:
        raise ValueError(f"::: {frame} has no end")


def _set_commas(formula: str) -> str:
    """LaTeX with decimal commas: TeX sets one as between two numbers, unless it stands in braces."""
    return re.sub(r"(?<=\d),(?=\d)", "{,}", formula) if language().decimal == "," else formula


def _paragraph(lines: list[str]) -> Iterator[Block]:
    text = "\n".join(lines)
    lines.clear()
    if not text:
        return
    terms = _TERMS.search(text)
    named = tuple(term.strip() for term in terms[1].split(",")) if terms else ()
    text = text[: terms.start()] if terms else text
    link = _LINK.fullmatch(text)
    if text == "---":
        yield Block("rule")
    elif text.startswith("$$"):
        yield Block("formula", _set_commas(" ".join(text.strip("$").split("\n")).strip()))
    elif text.startswith("```"):
        yield Block("plain", re.sub(r"\\([\W_])|:small\[\]", r"\1", "\n".join(text.split("\n")[1:-1])))
    elif images := _IMAGE.findall(text):
        if rest := _IMAGE.sub("", text).strip():
            raise ValueError(f"Pictures stand in a paragraph of their own, without: {rest}")
        yield Block("shows", items=tuple((name, alt, title or alt) for alt, name, title in images))
    elif text.startswith("> "):
        quoted = _BREAK.sub("", re.sub(r"^> ?", "", text, flags=re.MULTILINE))
        note = quoted.startswith("[!NOTE]")
        yield Block("note" if note else "caption", quoted.removeprefix("[!NOTE]").strip(), terms=named)
    elif link and link[2].startswith("?"):
        yield Block("button", link[1], (dict(parse_qsl(link[2][1:], keep_blank_values=True)),))
    elif link:
        yield Block("link", link[1], (link[2],))
    else:
        yield Block("text", _BREAK.sub("", text), terms=named)
