"""Hostile text in Chromium: every character is shown, nothing leaves the machine, and the policy would not let it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

import pytest

from model.needs import Need
from pages import PAGES, Page
from pages.frame.course.course import Course, Step, encode
from tests.browser.conftest import Visitor, serve
from tests.browser.test_app import path
from tests.injection import (
    FOREIGN,
    LANGUAGE_MODEL,
    LITERAL,
    MASKED_MODEL,
    TRANSLATOR,
    TYPED,
    save_checkpoints,
    tokens_as_text,
)

if TYPE_CHECKING:
    from playwright.sync_api import Route

EVERY_PAGE = [page for pages in PAGES.values() for page in pages]
ACTING = """host => {
  const all = (what) => everything().filter((node) => node.matches(what));
  const texts = (what, sought) => all(what).filter((node) => sought.test(node.textContent.trim()));
  return [
    ...all(`img[src*="${host}"], [style*="${host}"], link[href*="${host}"], iframe`),
    ...texts('b, strong, em, del, code, .stMarkdownColoredText', /^z\\d+$/),
    ...texts('.katex annotation', /^z\\d|^x\\^2$/),
    ...texts('.js-plotly-plot tspan[style*="bold"]', /^z\\d+$/),
    ...texts('[role=img][aria-label="home icon"]', /./),
  ].map((node) => node.outerHTML.slice(0, 200));
}"""
SHOWN = """number => [...document.querySelectorAll(`.st-key-text-${number} [data-testid=stElementContainer]`)]
  .map((node) => node.textContent)"""
MADE_INTO = """() => [...document.querySelectorAll(
    '[class*=st-key-text-] :is(em, del, code, h1, img, hr, blockquote, ol, .katex)'
  )].map((node) => node.outerHTML)"""
BLOCKED = """host => new Promise((resolve) => {
  document.addEventListener('securitypolicyviolation', (event) =>
    resolve([event.effectiveDirective, event.blockedURI]));
  document.body.append(Object.assign(new Image(), { src: `http://${host}/seen.png` }));
})"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """That has the hostile checkpoints."""
    folder = tmp_path_factory.mktemp("hostile")
    with serve(save_checkpoints(folder / "checkpoints"), folder / "log.txt") as address:
        yield address


@pytest.fixture
def guarded(visitor: Visitor) -> Iterator[Visitor]:
    """A window that stops whatever would leave the machine; `visitor` fails for it, and for every console error."""

    def stop(route: "Route") -> None:
        route.continue_() if urlsplit(route.request.url).hostname == "localhost" else route.abort()

    visitor.page.context.route(re.compile("^https?:"), stop)
    yield visitor
    visitor.page.context.unroute_all()


def checkpoint_for(page: Page) -> str:
    if Need.LANGUAGE_MODEL in page.needs:
        return LANGUAGE_MODEL
    return MASKED_MODEL if Need.MASKED_MODEL in page.needs else TRANSLATOR


def asked_for(page: Page) -> dict[str, str]:
    """Every text that a link can bring, and forged choices beside them."""
    source = f"<mask> {tokens_as_text(17)}" if checkpoint_for(page) == MASKED_MODEL else tokens_as_text(17)
    texts = {"source": source, "target": "Typed", "typed": TYPED, "side_sentence": TYPED, "side_mode": "Sentences"}
    forged = dict.fromkeys(("kind", "tau", "scope", "part", "alignment", "changes"), TYPED)
    return {"checkpoint": checkpoint_for(page), **texts, **forged, "new_tokens": "3"}


@pytest.mark.parametrize("page", EVERY_PAGE, ids=path)
def test_on_a_page_typed_text_and_tokens_and_names_of_a_checkpoint_are_only_text(
    page: Page, server: str, guarded: Visitor
) -> None:
    guarded.visit(f"{server}/{path(page)}?{urlencode(asked_for(page))}")
    assert guarded.page.evaluate(ACTING, FOREIGN) == []


def test_what_is_typed_into_the_fields_is_shown_as_it_is(server: str, guarded: Visitor) -> None:
    page = guarded.page
    asked = {"checkpoint": TRANSLATOR, "source": tokens_as_text(5), "target": "Typed", "typed": tokens_as_text(5)}
    guarded.visit(f"{server}/what_if?{urlencode(asked | {'part': 'Which heads matter', 'which_score': 'one token'})}")
    against = page.get_by_role("combobox", name="Against")
    against.fill(f"![x](http://{FOREIGN}/p.png)")
    against.press("Enter")
    guarded.settle()
    assert page.evaluate(ACTING, FOREIGN) == []

    guarded.visit(f"{server}/what_if?{urlencode(asked | {'part': 'Force a prefix'})}")
    word = page.get_by_role("combobox", name="Replace it by")
    word.fill("*z0*")
    word.press("Enter")
    guarded.settle()
    page.get_by_role("button", name="Force", exact=True).click()
    page.wait_for_url(re.compile("prefix=[0-9]"))
    guarded.settle()
    assert page.get_by_role("list", name="Forced").get_by_text("*z0*").count()
    assert page.evaluate(ACTING, FOREIGN) == []

    course = encode(Course(TYPED, (Step("temperature", asked, TYPED, TYPED),)))
    guarded.visit(f"{server}/temperature?{urlencode(asked | {'course': course, 'course_step': '1'})}")
    # What to do, and the question.
    page.get_by_text(TYPED, exact=True).nth(1).wait_for()
    assert page.evaluate(ACTING, FOREIGN) == []


def test_the_browser_loads_nothing_from_another_host_even_where_a_script_asks_for_it(
    server: str, guarded: Visitor
) -> None:
    guarded.visit(f"{server}/glossary?{urlencode({'checkpoint': TRANSLATOR})}")
    assert guarded.page.evaluate(BLOCKED, FOREIGN) == ["img-src", f"http://{FOREIGN}/seen.png"]
    refused, guarded.errors = guarded.errors, []
    assert all("Content Security Policy" in error for error in refused)
    guarded.requests = {url for url in guarded.requests if FOREIGN not in url}


def test_markdown_of_a_text_shows_exactly_this_text_in_every_element(
    guarded: Visitor, tmp_path: Path, saved_checkpoints: Path
) -> None:
    with serve(saved_checkpoints, tmp_path / "log.txt", Path(__file__).with_name("markdown_page.py")) as address:
        guarded.visit(address)
        for number, text in enumerate(LITERAL):
            shown = [" ".join(words.split()) for words in guarded.page.evaluate(SHOWN, number) if words.strip()]
            assert len(shown) >= 12
            assert [one for one in shown if text not in one] == [], text
        assert guarded.page.evaluate(MADE_INTO) == []
        guarded.page.goto("about:blank")  # which does not miss its server
