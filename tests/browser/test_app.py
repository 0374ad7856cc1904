"""The frame and the home page in Chromium."""

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import numpy as np

from model.checkpoints.translator import Translator
from pages import PAGES, Page
from tests.browser.conftest import Visitor, heading_of, wait_for_query

ALL_PAGES = [
    page for pages in PAGES.values() for page in pages if not any("language model" in need for need in page.needs)
]
SAME = (("translate", "Translate"), ("how_it_is_known", "Verification"), ("verification", "Verification"))
"""(path, title): two that are visited first, by other addresses than their own, and the own address of the second"""
CHOICES = {
    "source": "A dog & a cat.",
    "target": "Greedy",
    "kind": "Cross",
    "layer": "1",
    "head": "2",
    "tau": "2",
}


def path(page: Page) -> str:
    """Of its URL: the home page is the address itself."""
    name = page.path.removeprefix("pages/").removesuffix(".py")
    return "" if name == "translate" else name


def type_sentence(visitor: Visitor, sentence: str) -> None:
    box = visitor.page.get_by_role("textbox", name="Source sentence")
    box.fill(sentence)
    box.press("Enter")
    visitor.page.wait_for_function("text => location.search.includes(text)", arg=urlencode({"source": sentence}))
    visitor.settle()


def test_links_that_two_people_open_on_a_fresh_server_at_once_show_what_they_show_later(
    cold_server: str, visitor: Visitor, new_visitor: Callable[..., Visitor]
) -> None:
    """One of them by a page's old address."""
    links = [f"{cold_server}/{path}?{urlencode(CHOICES)}" for path, _ in SAME]
    both = (visitor, new_visitor())
    for each, link in zip(both, links[:2], strict=True):
        each.page.goto(link, wait_until="commit")
    for each, (_, title) in zip(both, SAME[:2], strict=True):
        each.settle()
        assert each.page.get_by_role("heading", name=heading_of(title)).is_visible()
        assert each.page.get_by_role("textbox", name="Source sentence").input_value() == CHOICES["source"]
        assert each.page.title() == f"{title} · Attention Explorer"
        assert "Page not found" not in each.page.locator("body").inner_text()
        wait_for_query(each, CHOICES)
    home, known = (each.picture() for each in both)
    for link, picture in zip(links, (home, known, known), strict=True):
        visitor.visit(link)
        assert visitor.picture() == picture
        wait_for_query(visitor, CHOICES)


def test_what_is_typed_is_translated_and_can_be_taken_away_as_a_link_and_as_files(
    server: str, visitor: Visitor, translator: Translator
) -> None:
    """The link is the address of this view; the files name the checkpoint and the hash of the model that these tests
    compare the pages with."""
    visitor.visit(server)
    before = visitor.page.locator(".sentence").inner_text()
    type_sentence(visitor, "A man & a dog.")
    wait_for_query(visitor, {"source": "A man & a dog."})
    assert not visitor.page.get_by_text("Ctrl+Enter").count()
    visitor.page.wait_for_function("before => document.querySelector('.sentence').innerText !== before", arg=before)
    visitor.page.get_by_role("button", name="Share", exact=True).click()
    link = visitor.page.get_by_label("Link to this view").inner_text().strip()
    assert parse_qs(urlsplit(link).query) == {"source": ["A man & a dog."]}
    assert urlsplit(link).netloc == urlsplit(server).netloc
    visitor.page.keyboard.press("Escape")
    visitor.page.get_by_test_id("stMain").get_by_role("button", name="Export", exact=True).last.click()
    for kind in ("CSV", "NPZ", "HTML"):
        with visitor.page.expect_download() as download:
            visitor.page.get_by_role("button", name=f"{kind}:").nth(1).click()
        assert download.value.suggested_filename.startswith("translate-alignment-")
        content = Path(download.value.path())
        if kind == "NPZ":
            found = np.load(content)
            assert str(found["checkpoint_sha256"]) == translator.hash
            assert found["alignment"].shape == (len(found["tgt_tokens"]), len(found["src_tokens"]))
        else:
            assert re.search("checkpoint_sha256.*[0-9a-f]{64}", content.read_text(), re.DOTALL)


def test_every_page_is_in_the_menu_and_reset_takes_the_temperature_back(server: str, visitor: Visitor) -> None:
    visitor.visit(server)
    for section, pages in PAGES.items():
        visitor.page.get_by_role("banner").get_by_text(section, exact=True).click()
        for page in pages:
            visitor.page.get_by_test_id("stTopNavDropdownLink").filter(has_text=page.title).wait_for()
        visitor.page.keyboard.press("Escape")
    slider = visitor.page.get_by_test_id("stSidebar").get_by_role("slider", name="Temperature")
    slider.focus()
    slider.press("ArrowRight")
    slider.press("ArrowRight")
    visitor.page.get_by_text("the model ran again with it").wait_for()
    wait_for_query(visitor, {"tau": "1.25"})
    visitor.page.get_by_test_id("stSidebar").get_by_role("button", name="Reset").click()
    visitor.page.get_by_text("the model ran again with it").wait_for(state="detached")
    wait_for_query(visitor, {})


def test_a_forged_link_shows_the_page_with_a_note_and_so_do_a_hundred_thousand_characters(
    server: str, visitor: Visitor
) -> None:
    forged = {"source": "<img src=x onerror=alert(1)>", "layer": "99999999999999999999", "tau": "<b>", "kind": "x"}
    visitor.visit(f"{server}/?{urlencode(forged)}")
    assert visitor.page.get_by_text("The link asks for").count() == 3
    wait_for_query(visitor, {"source": forged["source"]})
    assert visitor.page.locator("img[src=x]").count() == 0
    visitor.page.get_by_role("textbox", name="Source sentence").evaluate(
        """(box, text) => {
            Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(box, text);
            box.dispatchEvent(new Event("input", {bubbles: true}));
        }""",
        "dog " * 25_000,
    )
    visitor.page.get_by_role("textbox", name="Source sentence").press("Control+Enter")
    visitor.page.get_by_text("100,000 characters").wait_for()
    visitor.settle()
    wait_for_query(visitor, {})
    type_sentence(visitor, "A dog.")
    assert visitor.page.get_by_text("checks hold").is_visible()
