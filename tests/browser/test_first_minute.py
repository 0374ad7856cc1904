"""The first minute: a picture that is there, three things to do, and a phone."""

import pytest

from tests.browser.conftest import Visitor, heading_of
from tests.browser.test_app import type_sentence


def test_the_home_page_opens_on_a_picture_and_ticks_off_what_a_person_has_done(server: str, visitor: Visitor) -> None:
    visitor.visit(server)
    picture = visitor.page.locator(".st-key-translate-explore canvas").first
    picture.wait_for()
    assert picture.bounding_box()["y"] < 900
    tour = visitor.page.locator(".st-key-tour-line")
    assert tour.get_by_text("✓").count() == 0
    height = tour.bounding_box()["height"]
    type_sentence(visitor, "A dog.")
    tour.get_by_text("Type a sentence ✓").wait_for()
    tour.get_by_text("2. Open a head").click()
    visitor.page.get_by_role("heading", name=heading_of("Heads and layers")).wait_for()
    visitor.settle()
    visitor.page.get_by_test_id("stSidebar").get_by_role("radio", name="Cross").check(force=True)
    tour.get_by_text("Open a head ✓").wait_for()
    slider = visitor.page.get_by_test_id("stSidebar").get_by_role("slider", name="Temperature")
    slider.focus()
    slider.press("ArrowRight")
    tour.get_by_text("Move τ ✓").wait_for()
    visitor.settle()
    assert tour.bounding_box()["height"] == pytest.approx(height, abs=2)
    tour.get_by_role("button").click()
    tour.wait_for(state="detached")
    visitor.settle()


def test_on_a_phone_the_sidebar_makes_way_for_the_translation(server: str, visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    visitor.visit(server)
    for send in (
        lambda box: box.press("Enter"),
        lambda _: visitor.page.get_by_role("button", name="Translate").click(),
    ):
        visitor.page.get_by_test_id("stExpandSidebarButton").click()
        box = visitor.page.get_by_role("textbox", name="Source sentence")
        text = "Two cats." if box.input_value() != "Two cats." else "A dog."
        box.fill(text)
        send(box)
        visitor.page.wait_for_selector("[data-testid=stSidebar][data-collapsed=true]", state="attached")
        visitor.page.get_by_test_id("stMain").get_by_text(text, exact=True).wait_for()
    visitor.settle()
