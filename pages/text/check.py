"""What the languages lack: python -m pages.text.check [LANG ...].

Lists sentences and short texts that are missing or that were translated from another English than today's, and those
whose placeholders or facts are not those of the English; and sentences of the English that cannot be translated well.
Ends with 1 if there are any.
"""

import argparse
import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

from jinja2 import Environment, TemplateSyntaxError, nodes

from model.background.then_and_now import TRAININGS
from model.language import has_words
from model.needs import Need
from model.trace import KIND_TITLES
from pages import PAGES
from pages.lessons import ORDER
from pages.lessons.question import FOLDER
from pages.site.tasks import CONTINUE, TRANSLATE
from pages.text import LABELS, LESSON, STRINGS, read_language, sections_of, texts_of, words_of
from pages.text.catalogue import ALSO, DOMAINS, TEXT, Message, read_catalogue
from pages.text.skeleton import pieces
from viz.drawing import SCRIPTS
from viz.steps.steps import all_steps

ROOT = TEXT.parents[1]
SAYS = "tr", "sentence", "later"
"""functions whose first argument is a text to translate, in Python; in JavaScript and HTML it is tr"""
REFUSES = (
    *("Refusal", "CheckpointError", "UnreadableFile", "Unreadable", "WrongTokenizer", "Exceeded", "CannotDraw"),
    "_damaged",
)
"""errors whose first argument is one, and what makes one"""
PARTS = "pages", "viz", "model"
"""folders whose Python is read"""
_SAID_IN_JS = re.compile(r'\btr\(\s*"((?:[^"\\]|\\.)*)"')
_FORMULA = re.compile(r"\$\$.*|\$[^$\n]+\$|\{[{%#].*?[}%#]\}|`[^`]*`", re.DOTALL)
_SYMBOL = re.compile(r"(?<![\w\\{&])[A-Za-zε]_(?:model|ff|kv|drop|ls|[kvQKVO12])(?!\w)")
_LINKED = re.compile(r"\]\(([^)\s]+)\)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("languages", nargs="*", help="folders of pages/text, such as de; without any, all of them")
    parser.add_argument("--missing", action="store_true", help="print the short texts that are missing, as TOML")
    arguments = parser.parse_args()
    lines = [] if arguments.missing else [*faults_of_english()]
    for code in arguments.languages or catalogues():
        if arguments.missing:
            known = _strings_of(TEXT / code)
            lines += [f"{_quoted(text)} = {_quoted(text)}" for text in strings() if text not in known]
        else:
            lines += [f"{code}/{line}" for line in faults(TEXT / code)]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.exit(bool(lines and not arguments.missing))


def catalogues() -> list[str]:
    """The languages that have a catalogue, or short texts."""
    return sorted({path.parent.name for path in (*TEXT.glob("*/*.po"), *TEXT.glob(f"*/{STRINGS}"))})


def faults(folder: Path) -> Iterator[str]:
    """A line for whatever is missing, stale or different in a language's folder."""
    try:
        read_language(folder)
    except OSError:
        yield f"{STRINGS} is missing: it says what the language is called, and has its short texts."
    except ValueError as error:
        yield f"{STRINGS}: {error}"
    else:
        yield from _faults_of_strings(_strings_of(folder))
        yield from _faults_of_labels(_strings_of(folder, LABELS))
    for domain in DOMAINS:
        path = folder / f"{domain}.po"
        try:
            found = [*read_catalogue(path)] if path.is_file() else []
        except ValueError as error:
            yield f"{path.name}: {error}"
        else:
            yield from (f"{path.name}: {fault}" for fault in _faults_of_messages(domain, found))


def faults_of_english() -> Iterator[str]:
    """A line for each message with more than one choice, and for each loop in a sentence: nobody can translate that;
    and for each symbol with an underscore that is not set as a formula."""
    for domain in DOMAINS:
        for message, places in messages_in_english(domain).items():
            if len(re.findall(r"\{%-? if ", message)) > 1:
                yield f"{places[0]}: more than one choice in a sentence: {_short(message)}"
            yield from _faults_of_symbols(message, places[0])
        for place, text in _texts(domain):
            for line in text.split("\n"):
                if "{% for " in line and not line.startswith(("{% set ", "|")):
                    yield f"{place}: a loop in a sentence, and not in a {{% set %}} of its own: {_short(line)}"


@cache
def messages_in_english(domain: str) -> Mapping[str, list[str]]:
    """Every message -> the places where it stands, in the order of the English."""
    found: dict[str, dict[str, None]] = {}
    for place, text in _texts(domain):
        for message in (piece for is_message, piece in pieces(text) if is_message):
            found.setdefault(message, {})[place] = None
    return {message: [*places] for message, places in found.items()}


def _texts(domain: str) -> Iterator[tuple[str, str]]:
    """Where each text stands, and the text: a section, or a field of an entry."""
    if domain == "texts":
        for path in sorted(TEXT.glob("*.md")):
            sections = sections_of(path.read_text(encoding="utf-8"))
            yield from ((f"{path.name}: {title}", text) for title, text in sections.items())
        return
    for file, entries in entries_of().items():
        for key, entry in entries.items():
            for name, words in words_of(entry).items():
                yield from ((f"{file}: {key}: {name}", text) for text in texts_of(name, words))


def _whole(domain: str, place: str) -> str:
    """The section of a place, or its entry with all fields: a translation may name what any sentence there names."""
    return place if domain == "texts" else place.rpartition(": ")[0]


@cache
def facts_in_english(domain: str) -> Mapping[str, frozenset[str]]:
    """Section or entry -> what it names."""
    found: dict[str, list[str]] = {}
    for place, text in _texts(domain):
        found.setdefault(_whole(domain, place), []).append(text)
    return {whole: _names("\n".join(texts)) for whole, texts in found.items()}


@cache
def strings() -> Mapping[str, str]:
    """Every short text in English -> the file in which it was seen first."""
    found: dict[str, str] = {}
    for path in _sources():
        for text in _said_in(path):
            found.setdefault(text, path.relative_to(ROOT).as_posix())
    files = [path for ending in ("js", "html") for path in sorted((ROOT / "viz/site").glob(f"**/*.{ending}"))]
    for path in [*sorted(SCRIPTS.glob("**/*.js")), *files]:
        for text in _SAID_IN_JS.findall(path.read_text(encoding="utf-8")):
            found.setdefault(text.replace('\\"', '"'), path.relative_to(ROOT).as_posix())
    for text, where in _declared():
        found.setdefault(text, where)
    return {text: where for text, where in found.items() if has_words(text)}


def _sources() -> Iterator[Path]:
    """The Python files that may say something."""
    yield ROOT / "app.py"
    yield from (path for folder in PARTS for path in sorted((ROOT / folder).glob("**/*.py")))


def entries_of() -> dict[str, dict[str, Mapping[str, Any]]]:
    """What is written as TOML in English: file -> key -> entry."""

    def read(path: Path) -> dict[str, Any]:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))

    files = {"glossary.toml": {entry["name"]: entry for entry in read(TEXT / "glossary.toml")["term"]}}
    for name in ORDER:
        lesson = read(FOLDER / f"{name}.toml")
        files[f"lessons/{name}.toml"] = {LESSON: {one: lesson[one] for one in ("title", "about")}} | {
            station["slug"]: station for station in lesson["station"]
        }
    files["lessons/guesses.toml"] = {entry["ask"]: entry for entry in read(FOLDER / "guesses.toml")["question"]}
    return files


def _strings_of(folder: Path, table: str = "strings") -> dict[str, str]:
    return tomllib.loads((folder / STRINGS).read_text(encoding="utf-8")).get(table, {})


def _faults_of_strings(own: Mapping[str, str]) -> Iterator[str]:
    english = strings()
    for text, where in english.items():
        if text not in own:
            yield f"{STRINGS}: missing, of {where}: {text}"
    for text in own:
        if _placeholders(text) != _placeholders(own[text]):
            yield f"{STRINGS}: other placeholders: {text}"
    said = {*english, *_texts_of_code_and_checkpoints()}
    yield from (f"{STRINGS}: nothing says this any more: {text}" for text in own if text not in said)


def _faults_of_labels(own: Mapping[str, str]) -> Iterator[str]:
    """Those with words that no text of the code has; which are missing only the tests know, which draw every view."""
    said = {word for text in _texts_of_code_and_checkpoints() for word in re.findall(r"\w+", text.casefold())}
    for text, label in own.items():
        if text.count("{}") != label.count("{}"):
            yield f"{STRINGS}: other numbers: {text}"
        if unknown := {*re.findall(r"\w+", re.sub("<[^>]*>", " ", text.casefold()))} - said:
            yield f"{STRINGS}: nothing says {', '.join(sorted(unknown))} any more: {text}"


@cache
def _texts_of_code_and_checkpoints() -> frozenset[str]:
    """Any of them may be a fact that a translated text says in its language."""
    values = [json.loads(path.read_text(encoding="utf-8")) for path in (ROOT / "checkpoints").glob("*/*.json")]
    data = (path for folder in ("model", "viz") for path in (ROOT / folder).glob("**/*.toml"))
    values += [tomllib.loads(path.read_text(encoding="utf-8")) for path in data]
    return frozenset({*texts_of_code(), *texts_in(values)})


def texts_of_code() -> Iterator[str]:
    """All texts in the Python files, and the parts of f-strings; and those in tables of data beside them."""
    for path in (ROOT / "pages/pages.toml", ROOT / "pages/site/tasks.toml", TEXT / "names.toml"):
        yield from texts_in(tomllib.loads(path.read_text(encoding="utf-8")))
    for path in _sources():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        yield from (
            node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
        )


def texts_in(value: Any) -> Iterator[str]:
    """All texts in a value of JSON or TOML."""
    match value:
        case str():
            yield value
        case Mapping():
            yield from (text for part in value.values() for text in texts_in(part))
        case list():
            yield from (text for part in value for text in texts_in(part))


def _faults_of_messages(domain: str, own: list[Message]) -> Iterator[str]:
    english, known = messages_in_english(domain), {(one.context, one.english): one for one in own}
    facts = facts_in_english(domain)
    for message, places in english.items():
        one = known.get(("", message))
        if not (one and one.own) and not all((place, message) in known for place in places):
            yield f"missing, of {places[0]}: {_short(message)}"
        elif one and one.is_fuzzy:
            yield f"stale, of {places[0]}: {_short(message)}"
    for one in own:
        if one.context == ALSO:
            if one.english not in facts:
                yield f"other names of what is nothing in the English: {one.english}"
            continue
        places = english.get(one.english, [])
        if not places or (one.context and one.context not in places):
            yield f"nothing in the English{f' of {one.context}' if one.context else ''}: {_short(one.english)}"
        elif one.own and not one.is_fuzzy:
            yield from _faults_of_symbols(one.own, places[0])
            yield from _faults_of_names(
                one, frozenset().union(*(facts[_whole(domain, place)] for place in places)), places[0]
            )


def _faults_of_symbols(text: str, place: str) -> Iterator[str]:
    """Symbols are set as in print, but in names that people type."""
    prose = _FORMULA.sub("", text)
    if place.endswith(": options") and "$" in text:
        yield f"no formula is set in an option, of {place}: {_short(text)}"
    if not place.endswith(": others") and "\\" not in prose:  # a formula of several lines
        yield from (f"{symbol} is no formula, of {place}: {_short(text)}" for symbol in _SYMBOL.findall(prose))


def _faults_of_names(one: Message, facts: frozenset[str], place: str) -> Iterator[str]:
    """A translation may say a fact in another sentence of its section, but none that is not there; links stay."""
    try:
        own = _names(one.own)
    except TemplateSyntaxError as error:
        yield f"cannot be read, of {place}: {error}: {_short(one.own)}"
        return
    if others := own - facts:
        yield f"does not name the same, of {place}: {', '.join(sorted(others))}"
    if lacking := {*_LINKED.findall(one.english)} - {*_LINKED.findall(one.own)}:
        yield f"leaves out, of {place}: {', '.join(sorted(lacking))}"


def _short(message: str) -> str:
    return message if len(message) <= 70 else f"{message[:69]}…"


def _placeholders(text: str) -> set[tuple[str, str]]:
    return {(name, form or "") for _, name, form, _ in Formatter().parse(text) if name is not None}


@cache
def _names(text: str) -> frozenset[str]:
    """What a section or a message names: facts, and where links lead."""
    template = Environment().parse(re.sub(r"^% (.+)$", r"{% \1 %}", text, flags=re.MULTILINE))
    names = {node.name for node in template.find_all(nodes.Name) if node.ctx == "load"}
    return frozenset(names | {f".{node.attr}" for node in template.find_all(nodes.Getattr)} | {*_LINKED.findall(text)})


def _said_in(path: Path) -> Iterator[str]:
    """The texts that a Python file says."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        says = isinstance(node, ast.Call) and (
            getattr(node.func, "id", "") in SAYS or getattr(node.func, "id", getattr(node.func, "attr", "")) in REFUSES
        )
        if says and node.args:
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value


def _declared() -> Iterator[tuple[str, str]]:
    """Texts that stand in data: pages, views, controls, what a model has or lacks, kinds of attention."""
    for section, pages in PAGES.items():
        yield section, "pages/pages.toml"
        for page in pages:
            texts = page.title, page.question, page.summary, page.look_for
            yield from ((text, "pages/pages.toml") for text in texts if text)
            views = [*page.views, *filter(None, [page.answer])]
            for view in views:
                yield from ((text, f"{view.function.__module__.replace('.', '/')}.py") for text in _of_view(view))
    tables = tomllib.loads((TEXT / "names.toml").read_text(encoding="utf-8"))
    yield from ((text, "pages/text/names.toml") for text in texts_in(tables["strings"]))
    for task in (TRANSLATE, CONTINUE):
        texts = task.label, task.button, task.written, task.title
        yield from ((text, "pages/site/tasks.toml") for text in texts)
    yield from ((str(need), "model/needs.py") for need in Need)
    yield from ((text, "viz/steps/steps.json") for step in all_steps() for text in (step.title, step.what))
    trainings = (text.template for one in TRAININGS for text in (one.text, one.source))
    yield from ((text, "model/background/then_and_now.toml") for text in trainings)
    for title in KIND_TITLES.values():
        names = title, title.lower(), title.removesuffix("-attention")
        yield from ((name, "model/trace.py") for name in names)


def _of_view(view: Any) -> Iterator[str]:
    if view.title != "Answer":
        yield view.title
    if view.tab:
        yield view.tab
    if view.on_request:
        yield view.on_request.label
    for control in view.controls.values():
        parts = [control.label, control.help]
        match control.options:
            case Mapping():
                parts += control.options.values()
            case list() | tuple() if not control.is_text:
                parts += control.options
        yield from (text for text in parts if isinstance(text, str))


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


if __name__ == "__main__":
    main()
