"""Learn in Chromium: a station opens at its top, and an answered one is ticked in this browser."""

import re
from collections.abc import Callable

from pages.lessons import lessons
from tests.browser.conftest import Visitor

TOP = "document.querySelector('[data-testid=stMain]').scrollTop"


def test_a_station_opens_at_its_top_and_is_ticked_when_answered(server: str, visitor: Visitor) -> None:
    page, lesson = visitor.page, next(one for one in lessons() if one.slug == "decoder-block")
    visitor.visit(f"{server}/learn")
    start = page.locator(f".st-key-lesson-{lesson.slug} button")
    start.scroll_into_view_if_needed()
    page.wait_for_function(f"{TOP} > 0")
    start.click()
    page.get_by_role("heading", name=lesson.stations[0].title).wait_for()
    visitor.settle()
    page.wait_for_function(f"{TOP} === 0")
    for rung in ("A hint", "Another hint", "The answer, from this run"):
        page.get_by_role("button", name=rung, exact=True).click()
    visitor.settle()
    page.get_by_role("button", name="Next").click()
    page.get_by_role("heading", name=lesson.stations[1].title).wait_for()
    visitor.settle()
    page.reload()
    visitor.settle()
    page.get_by_role("button", name=re.compile("^1 ✓")).wait_for()


def test_options_are_read_whole_before_one_is_chosen(shipped_server: str, new_visitor: Callable) -> None:
    for width in (1280, 390):
        visitor = new_visitor(viewport={"width": width, "height": 800})
        visitor.visit(f"{shipped_server}/learn?lesson=interview&station=since")
        options = visitor.page.locator("[class*=st-key-guess-] button[role=radio]")
        lines = options.locator("p")
        assert lines.count() == 4
        assert lines.evaluate_all("all => all.filter(one => one.scrollWidth > one.clientWidth)") == []
