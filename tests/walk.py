"""python -m tests.walk [--pages masks] [--languages de] [--widths 390]: look at every page and tab in Chromium.

Four widths, three languages, light and dark. Listed is what cannot be read or reached there (tests/browser/cuts.py),
and every tab without a picture; then how many there are of each kind. `make test` looks at each page in one width,
language and scheme; this is the whole, and takes an hour or two.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import BrowserContext

from model.checkpoints import load_checkpoint
from model.needs import Need
from pages import PAGES, Page
from pages.text import languages
from tests.browser.chromium import chromium
from tests.browser.conftest import AT_ONCE, PATIENCE, ROOT, Visitor, serve
from tests.browser.cuts import cuts, pictures, watch_canvases

WIDTHS = (1920, 1280, 1024, 390)
HEIGHT = 844
NO_PICTURE = "no picture"
MODELS = ("en-de", "everyday-lm", "everyday-mlm", "everyday-lm-2017", "multi30k-tiny")
"""of the checkpoints that are shipped, the first that has what a view needs shows it"""


@dataclass(frozen=True)
class Tab:
    """One place of the app."""

    page: Page
    title: str
    """in English; empty where the page has no tabs"""
    checkpoint: str

    def address(self, language: str) -> str:
        """Relative to the app's."""
        asked = {"lang": language, "checkpoint": self.checkpoint}
        asked |= {self.page.tabs_key: self.title} if self.title else {}
        name = "" if self.page.name == "translate" else self.page.name
        return f"{name}?{urlencode(asked)}"

    @property
    def name(self) -> str:
        """For people."""
        return " > ".join(filter(None, (self.page.title, self.title)))


def tabs() -> Iterator[Tab]:
    """All of them, in the order of the menu."""
    features = {name: load_checkpoint(name).features for name in MODELS}
    for page in (page for section in PAGES.values() for page in section):
        titles: dict[str, set[Need]] = {}
        for view in page.views:
            title = "" if page.stacked else view.tab or view.title
            titles.setdefault(title, {*page.needs} | {need for need in view.needs if isinstance(need, Need)})
        for title, needs in (titles or {"": {*page.needs}}).items():
            yield Tab(page, title, next(name for name in MODELS if needs <= features[name]))


def look(visitor: Visitor, schemes: list[str], widths: list[int]) -> Iterator[tuple[str, str, str, str]]:
    """(where seen, kind, place, text) of what is wrong with the open tab."""
    for scheme, width in product(schemes, widths):
        visitor.page.set_viewport_size({"width": width, "height": HEIGHT})
        visitor.change_scheme(scheme)
        # Pictures are drawn again a moment after the window has changed.
        visitor.page.wait_for_timeout(300)
        for found in cuts(visitor.page):
            yield f"{scheme}, {width}", *found
    if not pictures(visitor.page):
        yield "", NO_PICTURE, "", ""


def _lacks(visitor: Visitor, tab: Tab, server: str) -> bool:
    """Whether a tab without a picture has none with any model; some views ask for more than they say."""
    for name in MODELS:
        visitor.visit(f"{server}/{replace(tab, checkpoint=name).address('en')}")
        if pictures(visitor.page):
            return False
    return True


def _built(tab: Tab, window: BrowserContext, server: str) -> list[str]:
    """Of a page's first tab: the titles of those beside it that are no views."""
    titles = [view.tab or view.title for view in tab.page.views]
    if not titles or tab.title != titles[0]:
        return []
    print(f"Tabs of {tab.page.title}", file=sys.stderr, flush=True)
    visitor = Visitor(window.new_page())
    visitor.visit(f"{server}/{tab.address('en')}")
    labels = visitor.page.locator("[data-testid=stMain] .stTabs").first.get_by_role("tab", include_hidden=True)
    built = [label for label in labels.all_inner_texts() if label not in titles]
    visitor.page.close()
    return built


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", help="names of files in pages/, separated by commas (default: all)")
    parser.add_argument("--languages", default=",".join(languages()), help="codes (default: all)")
    parser.add_argument("--schemes", default="light,dark")
    parser.add_argument("--widths", default=",".join(map(str, WIDTHS)), help="in pixels")
    asked = parser.parse_args()
    chosen = [tab for tab in tabs() if not asked.pages or tab.page.name in asked.pages.split(",")]
    kinds: Counter[str] = Counter()
    with ExitStack() as stack:
        log = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "log.txt"
        server = stack.enter_context(serve(ROOT / "checkpoints", log))
        window = stack.enter_context(chromium()).new_context()
        window.set_default_timeout(PATIENCE)
        window.add_init_script(AT_ONCE)
        watch_canvases(window)
        chosen += [Tab(tab.page, title, tab.checkpoint) for tab in chosen for title in _built(tab, window, server)]
        for tab, language in product(chosen, asked.languages.split(",")):
            print(f"{tab.name} [{language}]", file=sys.stderr, flush=True)
            visitor = Visitor(window.new_page())
            visitor.visit(f"{server}/{tab.address(language)}")
            found = [*look(visitor, asked.schemes.split(","), [*map(int, asked.widths.split(","))])]
            if found and found[-1][1] == NO_PICTURE and not _lacks(visitor, tab, server):
                found.pop()
            for seen, kind, place, text in found:
                kinds[kind] += 1
                print(f"{tab.name} [{', '.join(filter(None, (language, seen)))}] {kind}: {place}: {text}", flush=True)
            visitor.page.close()
    print(f"{len(chosen)} tabs: {dict(kinds) or 'nothing found'}")
    sys.exit(bool(kinds))


if __name__ == "__main__":
    main()
