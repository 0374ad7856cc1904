"""Glossary: the words of this field, from pages/text/glossary.toml, and what people are asked about them.

The questions are those of a lesson of Learn, where they are answered; here they are to be read.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from urllib.parse import urlencode

from model.background.layer_size import LayerSize
from model.language import language, tr
from pages import page_of
from pages.text import TEXT, translate_entry
from pages.views import OPEN_SECTION, Result, Run, answer, view
from pages.views.controls import text
from pages.views.words import fill


@dataclass(frozen=True, kw_only=True)
class Live:
    """Something that a page shows. All texts are Markdown, without tokens or typed text."""

    page: str
    """the name of the page's file"""
    query: Mapping[str, str] = field(default_factory=dict)
    """what to add to that page's URL: the tab"""

    section: str = ""
    """English title of the section in that tab; empty: the tab as a whole"""

    @property
    def tab(self) -> str:
        """The title of the tab that shows it; empty if the page itself does."""
        return next(iter(self.query.values()), "")

    @property
    def place(self) -> str:
        """The titles of the page, of the tab and of the section."""
        return ": ".join(map(tr, filter(None, (page_of(self.page).title, self.tab, self.section))))

    @property
    def to(self) -> dict[str, str]:
        """Parameters of the link to it."""
        return dict(self.query) | ({OPEN_SECTION: self.section} if self.section else {})

    @property
    def link(self) -> str:
        """Where it is, as texts of views name it."""
        return f"{self.page}?{urlencode(self.to)}".rstrip("?")


@dataclass(frozen=True, kw_only=True)
class Term(Live):
    """A word of the field."""

    key: str
    """its name in English, by which texts name it"""
    name: str
    text: str
    """what it means"""
    others: tuple[str, ...] = ()
    """names that other people use"""
    also: tuple[str, ...] = ()
    """names by which the search finds it, too"""
    formula: str = ""
    """LaTeX"""

    @property
    def names(self) -> tuple[str, ...]:
        return self.name, *self.others


@dataclass(frozen=True, kw_only=True)
class InterviewQuestion(Live):
    """What people are asked about attention."""

    ask: str
    answer: str
    """a template of the attention on screen and its size"""
    slug: str
    """of its station"""


def terms() -> tuple[Term, ...]:
    """All terms in the language of this run, in the order of the alphabet."""
    return _terms(language().code)


@cache
def _terms(_code: str) -> tuple[Term, ...]:
    every = []
    for english in _read(TEXT / "glossary.toml")["term"]:
        entry = translate_entry(english, "glossary.toml", english["name"])
        every.append(Term(**{**entry, "key": english["name"], "others": tuple(entry.get("others", ()))}))
    return tuple(sorted(every, key=lambda term: term.name.casefold()))


def questions() -> tuple[InterviewQuestion, ...]:
    """From recurrence to today's models."""
    return _questions(language().code)


@cache
def _questions(_code: str) -> tuple[InterviewQuestion, ...]:
    stations = _read(TEXT.parent / "lessons" / "interview.toml")["station"]
    stations = [translate_entry(one, "lessons/interview.toml", one["slug"]) for one in stations]
    names = ("page", "ask", "answer", "slug")
    return tuple(
        InterviewQuestion(query=station.get("tab", {}), **{name: station[name] for name in names})
        for station in stations
    )


def _read(path: Path) -> dict:
    return tomllib.loads(path.read_text(encoding="utf-8-sig"))


def find_terms(word: str) -> list[Term]:
    """The terms that are called so, then those with this word in one of their names, then in their explanation.

    A term is found by its English name in every language.
    """
    wanted = " ".join(word.casefold().split())
    named = [term for term in terms() if any(wanted in name.casefold() for name in (*term.names, term.key))]
    named.sort(key=lambda term: all(wanted != name.casefold() for name in (*term.names, term.key)))
    return named + [term for term in terms() if wanted in term.text.casefold() and term not in named]


@view("Terms")
def matches(_: Run, word: str = text("Find a word", ("", "softmax"), key="word")) -> Result:
    """The terms in which a word occurs; without a word, all."""
    return Result(facts={"word": word[:100], "all": len(terms()), "terms": find_terms(word)})


@view("Interview questions")
def interview(run: Run) -> Result:
    """Each question with an answer to open, in numbers of the run, and the place where the answer can be seen."""
    facts = {"attention": run.attention, "size": LayerSize.read(run.attention)}
    answers = {question.ask: fill(question.answer, facts) for question in questions()}
    return Result(facts={"questions": questions(), "answers": answers})


@answer
def one_line(_: Run) -> Result:
    """How many terms there are, and how many questions."""
    return Result(facts={"terms": len(terms()), "questions": len(questions())})
