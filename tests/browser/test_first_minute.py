"""The first minute: a picture that is there, three things to do, and a phone."""

import pytest

from pages import PAGES
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
    for name, control in (("sentence", ".st-key-source textarea"), ("temperature", ".st-key-tau input")):
        tour.locator(f".st-key-tour-{name} button").click()
        visitor.page.wait_for_function("control => document.activeElement?.matches(control)", arg=control)
        visitor.settle()
    tour.locator(".st-key-tour-close button").first.click()
    tour.wait_for(state="detached")
    visitor.settle()


PHONE = {"width": 390, "height": 844}
FINGER = 44
"""pixels"""


def test_a_phone_has_the_field_the_tokens_and_the_menu_on_its_first_screen(server: str, visitor: Visitor) -> None:
    visitor.page.set_viewport_size(PHONE)
    visitor.visit(server)
    page, tokens = visitor.page, visitor.page.locator(".explore .token")
    field = page.get_by_role("textbox", name="Source sentence")
    entries = page.locator(":is(.st-key-foot-menu, .st-key-bar-search) button:visible")
    boxes = [entry.bounding_box() for entry in entries.all()]
    names = [entry.inner_text().splitlines()[-1] for entry in entries.all()]
    assert sorted(names) == ["Attention", "Explore", "Learn", "Model", "Search"]
    top = min(box["y"] for box in boxes)
    for box in (field.bounding_box(), *(token.bounding_box() for token in tokens.all())):
        assert 0 <= box["x"] <= box["x"] + box["width"] <= PHONE["width"]
        assert 0 <= box["y"] <= box["y"] + box["height"] <= top
    for box in boxes:
        assert min(box["width"], box["height"]) >= FINGER
        assert 0 <= box["x"] <= box["x"] + box["width"] <= PHONE["width"]
        assert box["y"] + box["height"] <= PHONE["height"]
    button = page.get_by_role("button", name="Translate", exact=True)
    for text, send in (("Two cats.", lambda: field.press("Enter")), ("A dog.", button.click)):
        field.fill(text)
        with visitor.rerun():
            send()
        letters = "".join(tokens.all_inner_texts()).replace("-", "").replace("␣", "")
        assert letters.startswith(text.split()[0])


def test_on_a_phone_every_page_is_two_taps_away_and_the_sidebar_opens_over_the_page(
    server: str, visitor: Visitor
) -> None:
    visitor.page.set_viewport_size(PHONE)
    visitor.visit(f"{server}/masks")
    page, foot = visitor.page, visitor.page.locator(".st-key-foot-menu button:visible")
    reached = []
    for entry in foot.all():
        with visitor.rerun():
            entry.click()
        popover = page.get_by_test_id("stPopoverBody")
        reached += popover.get_by_test_id("stPageLink").all_inner_texts()
        page.keyboard.press("Escape")
        popover.wait_for(state="detached")
    titles = [one.title for pages in PAGES.values() for one in pages]
    assert sorted(text.splitlines()[-1] for text in reached) == sorted(titles)
    foot.filter(has_text="Attention").click()
    page.get_by_test_id("stPopoverBody").get_by_text("Positions", exact=True).click()
    page.get_by_role("heading", name=heading_of("Positions"), level=1).wait_for()
    visitor.settle()
    page.get_by_test_id("stExpandSidebarButton").click()
    page.get_by_role("slider", name="Temperature").wait_for()
    field = page.get_by_role("textbox", name="Source sentence")
    field.fill("A dog.")
    with visitor.rerun():
        field.press("Enter")
    page.wait_for_selector("[data-testid=stSidebar][data-collapsed=true]")
    visitor.settle()


LAPTOP = {"width": 1280, "height": 720}
IN_VIEW = """([wanted, text]) => {
    const boxes = everything()
        .filter((node) => node.matches(wanted) && node.textContent.includes(text))
        .filter((node) => node.checkVisibility({ visibilityProperty: true }))
        .map((node) => node.getBoundingClientRect()).filter(({ width, height }) => width > 1 && height > 1);
    return boxes.some(
        ({ top, bottom, left, right }) => top >= 0 && bottom <= innerHeight && left >= 0 && right <= innerWidth
    );
}"""
"""whether an element of our own or of Streamlit lies inside the screen"""
ANSWER = ".st-key-answer p"
QUESTIONS = {
    "Q, K and V of a word": (["animal"], ".qkv", ""),
    "where the word looks": ([], ".all canvas", ""),
    "why the scores are divided": ([], ".divided .why", ""),
    "what the mask does": (["Attention", "Masks"], ANSWER, "hides what comes later"),
    "a low and a high temperature": ([], ".control input[type=range]", ""),
    "what the heads do": (["Attention", "Heads and layers"], ANSWER, "the rules sort"),
    "what positional encoding is": (["Attention", "Positions"], ANSWER, "position"),
}
"""question -> what is clicked, and what then answers it: a selector, and a text in it"""


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_student_finds_an_answer_without_a_scroll_and_with_two_clicks(
    question: str, shipped_server: str, visitor: Visitor
) -> None:
    clicks, wanted, text = QUESTIONS[question]
    visitor.page.set_viewport_size(LAPTOP)
    visitor.visit(shipped_server)
    menu = visitor.page.get_by_test_id("stTopNavSection"), visitor.page.get_by_test_id("stTopNavDropdownLink")
    tokens = [visitor.page.locator(".explore .token")]
    for click, places in zip(clicks, menu if len(clicks) == 2 else tokens, strict=False):
        places.filter(has_text=click).first.click()
    visitor.page.wait_for_function(IN_VIEW, arg=[wanted, text])
    assert visitor.page.get_by_test_id("stMain").evaluate("main => main.scrollTop") == 0
    visitor.settle()
