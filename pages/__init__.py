"""The pages of the app. A page is one file here and one entry in pages.toml; menu, cards and tests follow from it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from model.beside import read_beside
from model.needs import Need

if TYPE_CHECKING:
    from pages.views import View


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page as it appears in the menu, in the home page's cards and in its own header."""

    section: str
    """of the menu"""
    name: str
    """of its file, with which the keys of its pictures, and the names of its files, begin"""
    title: str
    """a noun, in the menu"""
    icon: str
    """Material symbol, `:material/name:`"""
    summary: str
    """what one does and sees there, for the card"""
    look_for: str
    """one sentence: where to look first; the heading's tooltip"""
    question: str = ""
    """that the page answers: its heading; empty: the title"""
    needs: tuple[Need, ...] = ()
    """what the opened model must have"""
    ignores: tuple[str, ...] = ()
    """keys of the sidebar's controls that change nothing on the page"""
    tabs_key: str = "part"
    """of its open tab in the link"""
    first_kind: str = ""
    """of attention, while nobody has chosen another; empty: the model's first"""
    stacked: bool = False
    """whether its views stand one below the other; else each is a tab"""
    first_tab: str = ""
    """title of the tab that is open at first; empty: the first one"""

    @property
    def path(self) -> str:
        """Of its file, relative to app.py."""
        return f"pages/{self.name}.py"

    @property
    def heading(self) -> str:
        """What stands above the page."""
        return self.question or self.title

    @property
    def views_module(self) -> str:
        """The module of its views."""
        return f"pages.views.{self.section.lower()}.{self.name}"

    @property
    def views(self) -> Sequence["View"]:
        """Its views, imported now: importing them loads the model's code."""
        from pages.views import views_of

        return views_of(self.views_module)

    @property
    def answer(self) -> "View | None":
        """The view that answers its question in one line, if it has one."""
        from pages.views import answer_of

        view = answer_of(self.views_module)
        return view and replace(view, needs=self.needs)


@cache
def page_of(name: str) -> Page:
    """The page of this name, or of this `__file__`."""
    return next(page for page in EVERY if page.name == Path(name).stem)


def first_page_for(features: Collection[Need]) -> Page | None:
    """The first page of which a model with these features lacks nothing."""
    return next((page for page in EVERY if set(page.needs) <= set(features)), None)


def next_page(page: Page, features: Collection[Need]) -> Page | None:
    """The page that follows in the menu, of which a model with these features lacks nothing; None after the last."""
    following = EVERY[EVERY.index(page) + 1 :]
    return next((one for one in following if set(one.needs) <= set(features)), None)


def _read(section: str, entry: Mapping[str, Any]) -> Page:
    needs, icon = tuple(Need[name] for name in entry.get("needs", ())), f":material/{entry['icon']}:"
    return Page(section=section, **{**entry, "icon": icon, "needs": needs, "ignores": tuple(entry.get("ignores", ()))})


PAGES: Mapping[str, tuple[Page, ...]] = {
    section: tuple(_read(section, entry) for entry in entries)
    for section, entries in read_beside(__file__, "pages").items()
}
"""by the sections of the menu"""
EVERY: Sequence[Page] = tuple(page for pages in PAGES.values() for page in pages)
"""in the order of the menu"""
