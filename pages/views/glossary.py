"""Glossary: the words of this field, from pages/text/glossary.toml, and questions about them, from questions.toml."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import urlencode

from model.background.layer_size import LayerSize
from pages import page_of
from pages.views import Result, Run, answer, view
from pages.views.controls import text
from pages.views.words import TEXT, fill


@dataclass(frozen=True, kw_only=True)
class Live:
    """Something that a page shows. All texts are Markdown, without tokens or typed text."""

    page: str
    """the name of the page's file"""
    query: Mapping[str, str] = field(default_factory=dict)
    """what to add to that page's URL: the tab"""

    @property
    def tab(self) -> str:
        """The title of the tab that shows it; empty if the page itself does."""
        return next(iter(self.query.values()), "")

    @property
    def place(self) -> str:
        """The titles of the page and of the tab."""
        return ": ".join(filter(None, (page_of(f"{self.page}.py").title, self.tab)))

    @property
    def link(self) -> str:
        """Where it is, as texts of views name it."""
        return f"{self.page}?{urlencode(self.query)}".rstrip("?")


@dataclass(frozen=True, kw_only=True)
class Term(Live):
    """A word of the field."""

    name: str
    text: str
    """what it means"""
    others: tuple[str, ...] = ()
    """names that other people use"""
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
    here: str = ""
    """what the run on screen adds to the answer: a template of its attention and the size of that"""


@cache
def terms() -> tuple[Term, ...]:
    """All terms, in the order of the alphabet."""
    every = [Term(**{**entry, "others": tuple(entry.get("others", ()))}) for entry in _read("glossary.toml")["term"]]
    return tuple(sorted(every, key=lambda term: term.name.casefold()))


@cache
def questions() -> tuple[InterviewQuestion, ...]:
    """From recurrence to today's models."""
    return tuple(InterviewQuestion(**entry) for entry in _read("questions.toml")["question"])


def _read(name: str) -> dict:
    return tomllib.loads((TEXT / name).read_text(encoding="utf-8-sig"))


def find_terms(word: str) -> list[Term]:
    """The terms that are called so, then those with this word in one of their names, then in their explanation."""
    wanted = " ".join(word.casefold().split())
    named = [term for term in terms() if any(wanted in name.casefold() for name in term.names)]
    named.sort(key=lambda term: all(wanted != name.casefold() for name in term.names))
    return named + [term for term in terms() if wanted in term.text.casefold() and term not in named]


@view("Terms")
def matches(_: Run, word: str = text("Find a word", ("", "softmax"), key="word")) -> Result:
    """The terms in which a word occurs; without a word, all."""
    return Result(facts={"word": word[:100], "all": len(terms()), "terms": find_terms(word)})


@view("Interview questions")
def interview(run: Run) -> Result:
    """Each question with an answer to open, in numbers of the run, and the place where the answer can be seen."""
    facts = {"attention": run.attention, "size": LayerSize.read(run.attention)}
    here = {question.ask: fill(question.here, facts) for question in questions() if question.here}
    return Result(facts={"questions": questions(), "here": here})


@answer
def one_line(_: Run) -> Result:
    """How many terms there are, and how many questions."""
    return Result(facts={"terms": len(terms()), "questions": len(questions())})
