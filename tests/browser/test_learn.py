"""Learn in Chromium: a station opens at its top, and a finished one is ticked in this browser."""

import re

from pages.lessons import lessons
from tests.browser.conftest import Visitor

TOP = "document.querySelector('[data-testid=stMain]').scrollTop"


def test_a_station_opens_at_its_top_and_is_ticked_when_finished(server: str, visitor: Visitor) -> None:
    page, lesson = visitor.page, next(one for one in lessons() if one.slug == "decoder-block")
    visitor.visit(f"{server}/learn")
    start = page.locator(f".st-key-lesson-{lesson.slug} button")
    start.scroll_into_view_if_needed()
    page.wait_for_function(f"{TOP} > 0")
    start.click()
    page.get_by_role("heading", name=lesson.stations[0].title).wait_for()
    visitor.settle()
    page.wait_for_function(f"{TOP} === 0")
    page.get_by_role("button", name="Next").click()
    page.get_by_role("heading", name=lesson.stations[1].title).wait_for()
    visitor.settle()
    page.reload()
    visitor.settle()
    page.get_by_role("button", name=re.compile("^1 ✓")).wait_for()
