"""All that the app says, as entries that can be found: what each is called, what it says, and where it stands."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from model.background.family import members
from model.background.paper_results import LATER, TABLE_2, TABLE_4
from model.background.table_3 import TABLE_3
from model.background.then_and_now import TRAININGS
from model.language import ENGLISH, later, speaking, tr
from model.needs import Need
from pages import EVERY, Page, page_of
from pages.lessons import lessons
from pages.lessons.guesses import questions
from pages.lessons.station import Station
from pages.views import ANSWER, OPEN_SECTION, View
from pages.views.learn.glossary import Term, terms
from pages.views.words import PLACES, names_of, section_template, titles
from viz.special.model_card import amount

UNKNOWN = "…"
"""in the place of a fact"""
BESIDE = {
    "explore": ("translate", "", "Translate"),
    "boxes": ("whole_model", "Figure 1, alive"),
    "live_training": ("training", later("Train it in front of you")),
    "correction": ("training", later("Fine-tune on a correction")),
    "long_text": ("translate",),
}
"""texts that are no page's -> page, tab and section that show them"""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Something that the app says."""

    sort: str
    """Page, Tab, Section, Picture, Passage, Row, Word, Lesson or Question"""
    name: str
    """in the language of its text"""
    others: tuple[str, ...] = ()
    """names by which it is found, too"""
    lines: tuple[str, ...] = ()
    """what it says, a paragraph a line, without markup and facts"""
    place: tuple[str, ...]
    """the page's name, and the English titles of the tab and the section, or of the lesson and the station"""
    titles: tuple[str, ...]
    """the same in the language of the run, as they stand on screen"""
    query: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """parameters of the link to it"""
    needs: tuple[Need, ...] = ()
    """of the opened model"""
    key: str = ""
    """of a term"""
    foreign: bool = False
    """in English, where the run speaks another language"""


def entries() -> Iterator[Entry]:
    """Every page, tab, section, picture, passage, row, term, lesson and question, in the language of this run."""
    for page in EVERY:
        yield from _of_page(page)
    for file, place in BESIDE.items():
        for title in titles(file):
            yield from _of_text(file, title, _at(*place))
    yield from map(_of_term, terms())
    yield from _of_lessons()
    yield from _of_tables()


def _at(page: str, tab: str = "", section: str = "", view: View | None = None) -> Entry:
    """An entry of this place, still to be named."""
    where = page_of(page)
    view = view or next((one for one in where.views if section and one.title == section), None)
    query = {where.tabs_key: tab} if tab and not where.stacked else {}
    query |= {OPEN_SECTION: section} if section else {}
    place = (page, tab, section) if section else (page, tab) if tab else (page,)
    shown = tuple(tr(title) for title in (where.title, tab, section) if title)
    needs = tuple(need for need in (*where.needs, *(view.needs if view else ())) if isinstance(need, Need))
    return Entry(sort="", name=shown[-1], place=place, titles=shown, query=query, needs=needs)


def _of_page(page: Page) -> Iterator[Entry]:
    """The page, its tabs and its sections, and what stands in them."""
    said = [page.heading, page.summary, page.look_for]
    asked = [_plain(_said(question.ask)) for question in questions().get(page.name, ())]
    known = titles(page.name)
    answer = [line for _, line in _paragraphs(page.name, ANSWER)] if ANSWER in known else []
    others = names_of(page.name, ANSWER) if ANSWER in known else ()
    yield replace(_at(page.name), sort="Page", others=others, lines=(*map(tr, said), *answer, *asked))
    for view in page.views:
        if view.title not in known:
            continue
        tab, section = ("", view.title) if page.stacked else (view.tab or view.title, view.title if view.tab else "")
        yield from _of_text(page.name, view.title, _at(page.name, tab, section, view))
    for tab in {view.tab: None for view in page.views if view.tab}:
        yield replace(_at(page.name, tab), sort="Tab")


def _of_text(file: str, title: str, at: Entry) -> Iterator[Entry]:
    """A section of a text, and the pictures, passages and rows in it."""
    found = list(_paragraphs(file, title))
    others = names_of(file, title)
    sort = "Section" if len(at.place) > 2 else "Tab"
    yield replace(at, sort=sort, others=others, lines=tuple(line for _, line in found))
    passage: list[str] = []
    for kind, line in [*found, ("box", "")]:
        if kind == "picture":
            name, _, alt = line.partition(": ")
            yield replace(at, sort="Picture", name=name, lines=(alt or name,))
        elif kind == "row":
            yield replace(at, sort="Row", name=line.partition(" · ")[0], lines=(line,))
        if kind in ("box", "end of box") and passage:
            yield replace(at, sort="Passage", name=passage[0], lines=tuple(passage))
            passage = []
        if kind == "in box":
            passage.append(line)


def _of_term(term: Term) -> Entry:
    at = _at(term.page, term.tab, term.section)
    others = (*term.others, *term.also, *({term.key} - {term.name}))
    return replace(
        at, sort="Word", name=term.name, others=others, lines=(_plain(_said(term.text)),), key=term.key, needs=()
    )


def _of_lessons() -> Iterator[Entry]:
    with speaking(ENGLISH):
        english = lessons()
    for lesson, one in zip(lessons(), english, strict=True):
        at = Entry(
            sort="Lesson",
            name=lesson.title,
            others=lesson.also,
            lines=(lesson.about,),
            place=("learn", one.title),
            titles=(tr("Learn"), lesson.title),
            query={"lesson": lesson.slug, "station": lesson.stations[0].slug},
        )
        yield at
        for station, other in zip(lesson.stations, one.stations, strict=True):
            yield replace(
                at,
                sort="Question",
                name=station.title,
                others=station.also,
                lines=_said_at(station),
                place=(*at.place, other.title),
                titles=(*at.titles, station.title),
                query={"lesson": lesson.slug, "station": station.slug},
            )


def _said_at(station: Station) -> tuple[str, ...]:
    question = station.question
    said = (question.ask, station.do, station.look_for, *question.hints, question.answer, *question.options)
    return tuple(filter(None, (_plain(_said(one)) for one in said)))


def _of_tables() -> Iterator[Entry]:
    """The rows of the tables of models, of trainings and of results."""
    tree, then, results = (
        _at("family_tree", "Years, sizes, costs"),
        _at("family_tree", "Then and now"),
        _at("paper", "The paper's results"),
    )
    for one in members():
        said = (tr(one.family), str(int(one.year)), tr(amount(one.total)), one.norm, one.positions, tr(one.source))
        yield _row(tree, one.name, said)
    for one in TRAININGS:
        count = f"{one.devices} × {one.device}" if one.devices else one.device
        yield _row(then, one.name, (tr(one.text), count, one.parallel, tr(one.source)))
    for one in (*TABLE_2, *LATER):
        scores = (f"{pair}: {bleu} BLEU" for pair, bleu in (("EN-DE", one.en_de), ("EN-FR", one.en_fr)) if bleu)
        yield _row(results, one.system, scores)
    for one in TABLE_4:
        yield _row(results, one.parser, (one.training, f"F1 {one.f1}"))
    for one in TABLE_3:
        millions = (f"{one.millions} million parameters",) if one.millions else ()
        yield _row(_at("paper", "The paper's Table 3"), one.change, (f"{one.bleu} BLEU", *millions))


def _row(at: Entry, name: str, said: Iterable[str]) -> Entry:
    return replace(at, sort="Row", name=name, lines=(" · ".join(filter(None, (name, *said))),))


def _paragraphs(file: str, title: str) -> Iterator[tuple[str, str]]:
    """What a section says, and what kind each piece is: text, picture, row, in box, box or end of box."""
    frames: list[str] = []
    text: list[str] = []
    for line in [*map(str.strip, _said(section_template(file, title)).splitlines()), ""]:
        if line and not line.startswith((":::", "|", "![")):
            text.append(line)
            continue
        inside = "in box" if {"box", "closed"} & {*frames} else "text"
        if paragraph := _plain("\n".join(text)):
            yield inside, paragraph
        text.clear()
        if line == ":::":
            if frames.pop() in ("box", "closed"):
                yield "end of box", ""
        elif line.startswith(":::"):
            kind, _, name = line.removeprefix(":::").strip().partition(" ")
            if kind not in PLACES:
                frames.append(kind)
            if kind in ("box", "closed"):
                yield "box", ""
                text = [name] if name else []
        else:
            yield from _pictures_and_cells(line)


def _pictures_and_cells(line: str) -> Iterator[tuple[str, str]]:
    for alt, _, name in _PICTURE.findall(line):
        yield "picture", f"{_plain(name or alt)}: {_plain(alt)}" if name else _plain(alt)
    cells = [_plain(cell) for cell in line.strip("|").split("|")] if line.startswith("|") else [""]
    if any(set(cell) - set("-: ") for cell in cells) and cells[0] not in ("", UNKNOWN):
        yield "row", " · ".join(filter(None, cells))


_PICTURE = re.compile(r'!\[([^\]]*)\]\((\S+?)(?: "([^"]*)")?\)')
_MARKUP = (
    (re.compile(r"\A```.*\n|```\Z|\s*\[\?\]\(glossary:[^)]+\)"), ""),
    (re.compile(r"\A\[[^\]]*\]\([^)]*\)\Z|\A\$\$[\s\S]*\Z|\A[-#]+\Z"), ""),
    (re.compile(r":\w+\[((?:[^\]\\]|\\.)*)\]|\[((?:[^\]\\]|\\.)*)\]\([^)]*\)"), r"\1\2"),
    (re.compile(r"^> ?(\[!NOTE\] ?)?|^#+ |^- |\*\*|(?<![\w*])\*(?=\w)|(?<=\w)\*(?![\w*])|`|[✗✓] ", re.M), ""),
    (re.compile(r"\$([^$]*)\$"), lambda formula: _in_letters(formula[1])),
    (re.compile(r"\\([\W_])"), r"\1"),
    (re.compile(r"\s+"), " "),
)
"""what is replaced in a paragraph of Markdown, and by what"""


_LETTERS = {"sqrt": "√", "top": "ᵀ", "times": "×", "cdot": "·", "lVert": "‖", "rVert": "‖", ",": " ", "text": ""}
"""commands of LaTeX -> as they are typed; other ones by their names"""


def _in_letters(formula: str) -> str:
    """A formula within a line as one types it: d_model, W_Q W_Kᵀ."""
    return re.sub(r"\\(\w+|,)|\^(?=\\top)|[{}]", lambda part: _LETTERS.get(part[1], part[1]) or "", formula)


def _plain(markdown: str) -> str:
    """A paragraph as it is read; empty for a formula, and for a link that stands alone."""
    for pattern, instead in _MARKUP:
        markdown = pattern.sub(instead, markdown.strip())
    return markdown


def _said(template: str) -> str:
    """What a template says whatever its facts are: of a choice within a line one way, of one between lines all."""
    opened: list[list[str]] = [[""]]
    known: dict[str, str] = {}  # what the template has named: `{% set name %}text{% endset %}`
    names: list[str] = []
    for part in filter(None, _TAG.split(template)):
        word = part[2:-2].strip("- ").split(maxsplit=1)[:1]
        if part.startswith("{{"):
            plural = _PLURAL.search(part)
            opened[-1][-1] += plural[1] if plural else known.get(part[2:-2].strip(), UNKNOWN)
        elif not part.startswith("{%"):
            opened[-1][-1] += part
        elif word[0] in ("if", "for", "macro"):
            opened.append([""])
        elif naming := _NAMING.match(part):
            names.append(naming[1])
            opened.append([""])
        elif word[0] in ("elif", "else"):
            opened[-1].append("")
        elif word[0] == "endset":
            known[names.pop()] = "".join(opened.pop())
        elif word[0] in ("endif", "endfor", "endmacro"):
            ways = opened.pop() if word[0] != "endmacro" else opened.pop()[:0]
            between = any("\n" in way for way in ways)
            opened[-1][-1] += "\n".join(ways) if between else next(filter(None, ways), "")
    return opened[0][0]


_TAG = re.compile(r"\{#[\s\S]*?#\}|(\{%[\s\S]*?%\}|\{\{[\s\S]*?\}\})")
_NAMING = re.compile(r"\{%-? *set (\w+) *-?%\}")
_PLURAL = re.compile(r"""plural\([^,]+, *["']([^"']+)""")
