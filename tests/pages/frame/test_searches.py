"""What people type, and the place that the search leads them to: searches.toml, a list that a later change extends."""

import tomllib
from functools import cache
from pathlib import Path

from model.language import speaking, tr
from model.needs import Need
from pages import PAGES, Page
from pages.frame.bar.search import find
from pages.lessons import lessons
from pages.text import languages
from pages.views.learn.glossary import terms

SEARCHES = tomllib.loads(Path(__file__).with_name("searches.toml").read_text(encoding="utf-8"))
FIRST, AMONG_THREE = 0.9, 0.97
"""shares of the list that lead to their place with the first result, and with one of the first three"""
WIDGETS = {("training", "Train it in front of you")}
"""tabs that are no views"""


def pages() -> list[Page]:
    return [page for section in PAGES.values() for page in section]


@cache
def places() -> frozenset[tuple[str, ...]]:
    """All that a line of the list may name."""
    found = {(page.name,) for page in pages()} | WIDGETS
    for page in pages():
        for view in page.views:
            found |= {(page.name, view.tab or view.title), (page.name, view.tab, view.title)[: 3 if view.tab else 1]}
    for lesson in lessons():
        found |= {("learn", lesson.title), *(("learn", lesson.title, station.title) for station in lesson.stations)}
    return frozenset(found)


def places_found(word: str) -> list[tuple[str, ...]]:
    """Where the results lead; those of the name that is clicked first, where the word is nowhere."""
    found = find(word, frozenset(Need))
    found = find(found.alike[0], frozenset(Need)) if found.alike else found
    return [hit.entry.place for hit in found.hits if hit.entry]


def ranks() -> dict[tuple[str, str], int | None]:
    """Language and typed words -> number of the first result that leads to the place, from 0; None: none does."""
    found = {}
    for code, searches in SEARCHES.items():
        with speaking(languages()[code]):
            for word, place in searches.items():
                led = [one[: len(place)] == tuple(place) for one in places_found(word)]
                found[code, word] = led.index(True) if True in led else None
    return found


def test_every_place_of_the_list_is_there() -> None:
    named = {tuple(place) for searches in SEARCHES.values() for place in searches.values()}
    assert named <= places()


def test_the_list_has_120_searches_and_half_of_them_are_no_name_of_a_page_a_tab_or_a_term() -> None:
    unnamed = 0
    for code, searches in SEARCHES.items():
        with speaking(languages()[code]):
            views = [view for page in pages() for view in page.views]
            titles = [title for view in views for title in (view.title, view.tab)] + [page.title for page in pages()]
            names = {tr(title) for title in titles if title} | {name for term in terms() for name in term.names}
            unnamed += len({word.casefold() for word in searches} - {name.casefold() for name in (*names, *titles)})
    assert sum(map(len, SEARCHES.values())) >= 120
    assert unnamed >= 60


def test_the_list_leads_to_its_places() -> None:
    found = ranks()
    first = sum(rank == 0 for rank in found.values()) / len(found)
    three = sum(rank is not None and rank < 3 for rank in found.values()) / len(found)
    missed = [f"{code}: {word} ({rank})" for (code, word), rank in found.items() if rank != 0]
    assert first >= FIRST, missed
    assert three >= AMONG_THREE, missed
