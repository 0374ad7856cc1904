"""The words of this field, each explained once in glossary.toml: for tooltips, the search and the page Glossary."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import streamlit as st

from pages import page_of
from pages.widgets.page_links import link_with

FILE = Path(__file__).with_name("glossary.toml")


@dataclass(frozen=True)
class Term:
    """A term and where it is live."""

    name: str
    text: str
    """what it means: Markdown, no tokens or typed text"""
    page: str
    """the name of the file of a page that shows it"""
    query: Mapping[str, str] = field(default_factory=dict)
    """what to add to that page's URL: the tab"""
    others: tuple[str, ...] = ()
    """names that other people use"""
    formula: str = ""
    """LaTeX"""

    @property
    def names(self) -> tuple[str, ...]:
        return self.name, *self.others

    @property
    def tab(self) -> str:
        """The title of the tab that shows it; empty if the page itself does."""
        return next(iter(self.query.values()), "")


@cache
def terms() -> tuple[Term, ...]:
    """All terms, in the order of the alphabet."""
    entries = tomllib.loads(FILE.read_text(encoding="utf-8"))["term"]
    found = [Term(**{**entry, "others": tuple(entry.get("others", ()))}) for entry in entries]
    return tuple(sorted(found, key=lambda term: term.name.casefold()))


def find_terms(word: str) -> list[Term]:
    """The terms with this word in one of their names, or in their explanation; the former first."""
    wanted = " ".join(word.casefold().split())
    named = [term for term in terms() if any(wanted in name.casefold() for name in term.names)]
    return named + [term for term in terms() if wanted in term.text.casefold() and term not in named]


def show_term(term: Term, with_formula: bool = False) -> None:
    """What the term means, and a link to where it is live."""
    others = f" · also: {', '.join(term.others)}" if term.others else ""
    formula = f"\n\n$$\n{term.formula}\n$$" if with_formula and term.formula else ""
    st.markdown(f"**{term.name}**{others}\n\n{term.text}{formula}")
    place = page_of(f"{term.page}.py").title
    link_with(f"{place}: {term.tab}" if term.tab else place, term.page, **term.query)


def define(*words: str) -> str:
    """A tooltip that explains these terms."""
    found = {term.name: term.text for term in terms()}
    if len(words) == 1:
        return found[words[0]]
    return "  \n".join(f"**{word.capitalize()}**: {found[word]}" for word in words)
