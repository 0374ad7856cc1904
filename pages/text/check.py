"""What a language lacks: python -m pages.text.check LANG.

Lists sections, terms, stations and short texts that are missing or that were translated from another English than
today's, and those whose placeholders, facts, pictures or links are not those of the English. Ends with 1 if there
are any.
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

from jinja2 import Environment, nodes

from model.language import has_words
from model.needs import Need
from model.trace import KIND_TITLES
from pages import PAGES
from pages.lessons import ORDER
from pages.lessons.question import FOLDER
from pages.text import ALSO, FROM, LABELS, LESSON, STRINGS, TEXT, sections_of, split_stamp, stamp, stamp_of, words_of
from viz.drawing import SCRIPTS
from viz.steps.steps import all_steps

ROOT = TEXT.parents[1]
SAYS = "tr", "sentence", "later"
"""functions whose first argument is a text to translate, in Python; in JavaScript and HTML it is tr"""
PARTS = "pages", "viz", "model"
"""folders whose Python is read"""
_SAID_IN_JS = re.compile(r'\btr\(\s*"((?:[^"\\]|\\.)*)"')
_NAMED = re.compile(r"!\[[^\]]*\]\((\S+?)[ )]|\[[^\]]*\]\(([^)\s]+)\)|^::: (\w+)", re.MULTILINE)
"""pictures, links and frames of a text"""
_PLAIN = {"f", "label", "n", "error", "tex", "tr"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("language", help="the name of its folder in pages/text, such as de")
    parser.add_argument("--stamps", action="store_true", help="print the stamp of each section of the English instead")
    parser.add_argument("--missing", action="store_true", help="print the short texts that are missing, as TOML")
    arguments = parser.parse_args()
    folder = TEXT / arguments.language
    if arguments.stamps:
        lines = [f"{stamp} {where}" for where, stamp in stamps()]
    elif arguments.missing:
        lines = [f"{_quoted(text)} = {_quoted(text)}" for text in strings() if text not in _strings_of(folder)]
    else:
        lines = list(faults(folder))
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    if not (arguments.stamps or arguments.missing):
        sys.exit(bool(lines))


def faults(folder: Path) -> Iterator[str]:
    """A line for whatever is missing, stale or different in a language's folder."""
    if not (folder / STRINGS).is_file():
        yield f"{folder} has no {STRINGS}: it says what the language is called, and its short texts."
        return
    yield from _faults_of_strings(_strings_of(folder))
    yield from _faults_of_labels(_strings_of(folder, LABELS))
    for path in sorted(TEXT.glob("*.md")):
        yield from _faults_of_sections(path.name, _sections(path), _sections(folder / path.name))
    for file, entries in entries_of().items():
        path = folder / file
        own = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        for key, entry in entries.items():
            yield from _faults_of_entry(f"{file}: {key}", entry, own.get(key))
        yield from (f"{file}: {key} is nothing in the English" for key in own if key not in entries)


def stamps() -> Iterator[tuple[str, str]]:
    """Where each section, term, lesson, station and question stands, and its stamp."""
    for path in sorted(TEXT.glob("*.md")):
        yield from ((f"{path.name}: {title or 'above the first section'}", stamp(text)) for title, text in
                    _sections(path).items() if text.strip())  # fmt: skip
    for file, entries in entries_of().items():
        yield from ((f"{file}: {key}", stamp_of(entry)) for key, entry in entries.items())


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


def _sections(path: Path) -> dict[str, str]:
    return sections_of(path.read_text(encoding="utf-8")) if path.is_file() else {}


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
    return frozenset({*texts_of_code(), *texts_in(values)})


def texts_of_code() -> Iterator[str]:
    """All texts in the Python files, and the parts of f-strings."""
    for path in _sources():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        yield from (
            node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
        )


def texts_in(value: Any) -> Iterator[str]:
    """All texts in a value of JSON."""
    match value:
        case str():
            yield value
        case Mapping():
            yield from (text for part in value.values() for text in texts_in(part))
        case list():
            yield from (text for part in value for text in texts_in(part))


def _faults_of_sections(name: str, english: Mapping[str, str], own: Mapping[str, str]) -> Iterator[str]:
    for title, text in english.items():
        where = f"{name}: {title or 'above the first section'}"
        if title not in own:
            if text.strip():
                yield f"{where} is missing"
            continue
        origin, translated = split_stamp(own[title])
        if text.strip() and origin != stamp(text):
            yield f"{where} is stale: the English has {stamp(text)} now"
        if different := _marks(text) ^ _marks(translated):
            yield f"{where} does not name the same: {', '.join(sorted(different))}"
    yield from (f"{name}: {title} is nothing in the English" for title in own if title not in english)


def _faults_of_entry(where: str, english: Mapping[str, Any], own: Mapping[str, Any] | None) -> Iterator[str]:
    words = words_of(english)
    if own is None:
        yield f"{where} is missing"
        return
    if own.get(FROM) != stamp_of(english):
        yield f"{where} is stale: the English has {stamp_of(english)} now"
    if lacking := {*words} - {*own} - {"others"}:
        yield f"{where} lacks {', '.join(sorted(lacking))}"
    if more := {*own} - {*words} - {FROM, ALSO}:
        yield f"{where} has {', '.join(sorted(more))}, which the English has not"
    for name in {*words} & {*own} - {"others"}:
        texts = [text if isinstance(text, list) else [text] for text in (words[name], own[name])]
        if len(texts[0]) != len(texts[1]) or _marks("\n".join(texts[0])) != _marks("\n".join(texts[1])):
            yield f"{where} does not name the same in {name}"


def _placeholders(text: str) -> set[tuple[str, str]]:
    return {(name, form or "") for _, name, form, _ in Formatter().parse(text) if name is not None}


def _marks(text: str) -> set[str]:
    """What a text names: facts, pictures, links, frames."""
    template = Environment().parse(re.sub(r"^% (.+)\n", r"{% \1 %}", text, flags=re.MULTILINE))
    names = {node.name for node in template.find_all(nodes.Name) if node.ctx == "load"}
    names |= {f".{node.attr}" for node in template.find_all(nodes.Getattr)}
    plain = "".join(part.data for part in template.find_all(nodes.TemplateData))
    return names | {next(filter(None, found)) for found in _NAMED.findall(plain)}


def _said_in(path: Path) -> Iterator[str]:
    """The texts that a Python file says."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in SAYS and node.args:
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value


def _declared() -> Iterator[tuple[str, str]]:
    """Texts that stand in data: pages, views, controls, what a model has or lacks, kinds of attention."""
    for section, pages in PAGES.items():
        yield section, "pages/__init__.py"
        for page in pages:
            texts = page.title, page.question, page.summary, page.look_for
            yield from ((text, "pages/__init__.py") for text in texts if text)
            views = [*page.views, *filter(None, [page.answer])]
            for view in views:
                yield from ((text, f"pages/views/{page.name}.py") for text in _of_view(view))
    yield from ((str(need), "model/needs.py") for need in Need)
    yield from ((text, "viz/steps/steps.json") for step in all_steps() for text in (step.title, step.what))
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
