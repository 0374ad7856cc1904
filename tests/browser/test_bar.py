"""The bar above every page, in Chromium: search by keys alone, share, light and dark, on a phone."""

import re

import pytest

from pages.views import OPEN_SECTION
from tests.browser.conftest import Visitor, heading_of, wait_for_query

PHONE = {"width": 390, "height": 844}


def scheme(visitor: Visitor) -> str:
    return visitor.page.evaluate("getComputedStyle(document.querySelector('.stApp')).colorScheme")


def search(visitor: Visitor, word: str) -> None:
    # The key is that of the button: on a busy machine it is drawn after the run has ended.
    visitor.page.locator(".st-key-bar").get_by_role("button", name="Search").wait_for()
    visitor.settle()
    visitor.page.keyboard.press("Control+k")
    visitor.page.wait_for_function("document.activeElement.matches('[role=dialog] input')")
    visitor.page.keyboard.type(word)


def test_by_keys_alone_a_search_opens_a_page_a_tab_and_a_head(server: str, visitor: Visitor) -> None:
    visitor.visit(f"{server}/masks")
    search(visitor, "decoding")
    visitor.page.keyboard.press("Enter")
    visitor.page.get_by_role("heading", name=heading_of("Decoding"), exact=True, level=1).wait_for()
    visitor.settle()
    search(visitor, "L1H2")
    visitor.page.get_by_role("dialog").get_by_role("button", name="Encoder self-attention, layer 1, head 2").wait_for()
    visitor.page.keyboard.press("ArrowDown")
    visitor.page.keyboard.press("Enter")
    visitor.page.get_by_role("dialog").wait_for(state="detached")
    wait_for_query(visitor, {"layer": "1", "head": "2"})
    search(visitor, "padding")
    visitor.page.get_by_role("dialog").get_by_role("link", name="Masks: Padding").click()
    visitor.page.get_by_role("tab", name="Padding", selected=True).wait_for()
    visitor.settle()


def test_a_result_leads_to_a_section_inside_a_tab_which_then_has_the_focus(server: str, visitor: Visitor) -> None:
    visitor.visit(f"{server}/masks")
    search(visitor, "section 5.4")
    visitor.page.get_by_role("dialog").get_by_role("link", name="5 Training").wait_for()
    visitor.page.keyboard.press("Enter")
    visitor.page.wait_for_function("document.activeElement.matches('.st-key-section-5-Training')")
    box = visitor.page.locator(".st-key-section-5-Training").bounding_box()
    assert 0 < box["y"] < visitor.page.viewport_size["height"] / 2
    assert OPEN_SECTION not in visitor.page.url


def test_a_search_whose_field_is_drawn_late_takes_what_is_typed(server: str, visitor: Visitor) -> None:
    late = []
    visitor.page.route("**/TextInput.*.js", lambda route: late.append(route))
    visitor.visit(f"{server}/masks")
    visitor.page.keyboard.press("Control+k")
    visitor.page.wait_for_function("document.activeElement.closest('[role=dialog]')")
    visitor.wait_until(lambda: bool(late), "the field needs no script")
    for route in late:
        route.continue_()
    visitor.page.wait_for_function("document.activeElement.matches('[role=dialog] input')")
    visitor.page.unroute("**/TextInput.*.js")
    visitor.settle()


def test_light_and_dark_turn_at_once_and_are_remembered_on_another_page(server: str, visitor: Visitor) -> None:
    visitor.visit(f"{server}/masks")
    runs = visitor.runs
    assert scheme(visitor) == "light"
    visitor.page.get_by_role("button", name="Light or dark").click()
    visitor.page.wait_for_function("getComputedStyle(document.querySelector('.stApp')).colorScheme === 'dark'")
    assert visitor.page.url == f"{server}/masks"
    visitor.settle()
    visitor.visit(f"{server}/temperature")
    assert scheme(visitor) == "dark"
    visitor.page.get_by_role("button", name="Light or dark").click()
    visitor.page.wait_for_function("getComputedStyle(document.querySelector('.stApp')).colorScheme === 'light'")
    visitor.settle()
    visitor.change_scheme("dark")
    assert visitor.runs >= runs, "without a choice the page follows the system"
    visitor.change_scheme("light")


ZERO_IS = """(scheme) => {
  const scale = document.querySelector(".js-plotly-plot")?.layout?.coloraxis?.colorscale;
  const middle = scale?.find(([place]) => place === 0.5)[1].match(/\\d+/g).map(Number);
  return middle?.every((part) => (scheme === "dark" ? part < 50 : part > 200));
}"""
"""whether the middle of a chart's scale of signed numbers is that of this scheme"""


def test_zero_is_as_dark_as_the_page_in_a_chart_as_in_a_picture_of_ours(server: str, visitor: Visitor) -> None:
    address = f"{server}/attention_step_by_step?part=Your+own+vectors"
    visitor.visit(address)
    visitor.page.wait_for_function(ZERO_IS, arg="light")
    for scheme in ("dark", "light"):
        visitor.page.get_by_role("button", name="Light or dark").click()
        visitor.page.wait_for_function(ZERO_IS, arg=scheme)
        visitor.settle()
    visitor.change_scheme("dark")
    visitor.page.wait_for_function(ZERO_IS, arg="dark")
    visitor.visit(address)
    visitor.page.wait_for_function(ZERO_IS, arg="dark")


def test_what_is_shared_names_the_view_and_says_that_this_machine_alone_has_it(server: str, visitor: Visitor) -> None:
    visitor.visit(f"{server}/masks?layer=1")
    visitor.page.get_by_role("button", name="Share", exact=True).click()
    dialog = visitor.page.get_by_role("dialog")
    dialog.get_by_text("only on this machine").wait_for()
    assert dialog.get_by_label("Link to this view").inner_text().strip() == f"{server}/masks?layer=1"
    code = dialog.get_by_role("img").first
    code.wait_for()
    assert code.evaluate("image => image.naturalWidth === image.naturalHeight && image.naturalWidth > 100")
    dialog.get_by_role("tab", name="In a page of your own").click()
    frame = dialog.get_by_test_id("stCode").inner_text()
    (source,) = re.findall('src="([^"]+)"', frame)
    visitor.page.keyboard.press("Escape")
    visitor.visit(source.replace("&amp;", "&"))
    visitor.page.get_by_role("heading", name=heading_of("Masks"), exact=True).wait_for()
    for bar in (".st-key-bar", "[data-testid=stTopNavSection]"):
        assert not visitor.page.locator(bar).count()
    visitor.page.get_by_test_id("stExpandSidebarButton").wait_for()


@pytest.mark.parametrize("size", [PHONE, {"width": 768, "height": 900}, {"width": 1280, "height": 720}])
def test_the_bar_is_one_row_inside_the_window_and_on_a_phone_large_enough_for_a_finger(
    size: dict, server: str, visitor: Visitor
) -> None:
    visitor.page.set_viewport_size(size)
    visitor.visit(f"{server}/masks")
    buttons = visitor.page.locator(".st-key-bar button:visible").all()
    if size["width"] <= 768:  # there the search is the last entry at the foot
        buttons = [button for button in buttons if "Search" not in button.inner_text()]
    boxes = [button.bounding_box() for button in buttons]
    assert len(boxes) == 5 - (size["width"] <= 768)
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= size["width"] for box in boxes)
    assert max(box["y"] for box in boxes) - min(box["y"] for box in boxes) < 4
    assert min(box["height"] for box in boxes) >= (44 if size == PHONE else 40)
    if size == PHONE:
        assert min(box["width"] for box in boxes) >= 44
    menu = [each.bounding_box() for each in visitor.page.locator("[data-testid=stTopNavSection]:visible").all()]
    left = min(box["x"] for box in boxes)
    level = [
        box
        for box in menu
        if box["y"] < boxes[0]["y"] + boxes[0]["height"] and boxes[0]["y"] < box["y"] + box["height"]
    ]
    assert all(box["x"] + box["width"] <= left for box in level)


def test_what_is_at_work_on_the_home_page_leaves_the_bar_and_the_tour_free(server: str, visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 1280, "height": 720})
    visitor.visit(f"{server}/?tau=2")
    words = visitor.page.locator(".st-key-at-work p").first
    words.wait_for()
    box, found, tour = (
        one.bounding_box()
        for one in (words, visitor.page.get_by_role("button", name="Search"), visitor.page.locator(".st-key-tour-line"))
    )
    assert box["y"] >= max(found["y"] + found["height"], tour["y"] + tour["height"])


HELD = """saves => {
    const { activeElement: at } = document;
    window.held = at.matches('button:enabled') && at.textContent.includes(saves) ? (window.held ?? 0) + 1 : 0;
    return window.held >= 5;
}"""
"""whether the button has kept the focus five times, one after the other"""


@pytest.mark.parametrize(("dialog", "saves"), [("Export", "Save masks-"), ("Export", "NPZ"), ("Share", "PNG")])
def test_after_a_download_escape_closes_its_dialog_and_the_focus_is_where_it_began(
    dialog: str, saves: str, server: str, visitor: Visitor
) -> None:
    """While the file is made its button is disabled, and would leave the focus to the page."""
    visitor.visit(f"{server}/masks")
    opens = visitor.page.locator(".st-key-bar").get_by_role("button", name=dialog).first
    opens.press("Enter")
    save = visitor.page.get_by_role("dialog").get_by_role("button", name=saves)
    with visitor.page.expect_download():
        save.press("Enter")
    visitor.page.wait_for_function(HELD, arg=saves, polling=100)
    visitor.page.keyboard.press("Escape")
    visitor.page.get_by_role("dialog").wait_for(state="detached")
    visitor.page.wait_for_function("opens => opens.contains(document.activeElement)", arg=opens.element_handle())
