"""The words of this field, each explained once in glossary.toml: for tooltips, the search and the page Glossary.

And questions about them, in questions.toml.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import streamlit as st

from pages import page_of
from pages.widgets.page_links import link_with


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
class Question(Live):
    """What people are asked about attention."""

    ask: str
    answer: str


@cache
def terms() -> tuple[Term, ...]:
    """All terms, in the order of the alphabet."""
    found = [Term(**{**entry, "others": tuple(entry.get("others", ()))}) for entry in _read("glossary.toml")["term"]]
    return tuple(sorted(found, key=lambda term: term.name.casefold()))


@cache
def questions() -> tuple[Question, ...]:
    """From recurrence to today's models."""
    return tuple(Question(**entry) for entry in _read("questions.toml")["question"])


def _read(name: str) -> dict:
    return tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8-sig"))


def find_terms(word: str) -> list[Term]:
    """The terms that are called so, then those with this word in one of their names, then in their explanation."""
    wanted = " ".join(word.casefold().split())
    named = [term for term in terms() if any(wanted in name.casefold() for name in term.names)]
    named.sort(key=lambda term: all(wanted != name.casefold() for name in term.names))
    return named + [term for term in terms() if wanted in term.text.casefold() and term not in named]


def show_term(term: Term, with_formula: bool = False) -> None:
    """What the term means, and a link to where it is live."""
    others = f" · also: {', '.join(term.others)}" if term.others else ""
    formula = f"\n\n$$\n{term.formula}\n$$" if with_formula and term.formula else ""
    st.markdown(f"**{term.name}**{others}\n\n{term.text}{formula}")
    link_to(term)


def link_to(live: Live) -> None:
    """A link to the page, and the tab, that shows it."""
    place = page_of(f"{live.page}.py").title
    link_with(f"{place}: {live.tab}" if live.tab else place, live.page, **live.query)


def define(*words: str) -> str:
    """A tooltip that explains these terms."""
    found = {term.name: term.text for term in terms()}
    if len(words) == 1:
        return found[words[0]]
    return "  \n".join(f"**{word.capitalize()}**: {found[word]}" for word in words)
