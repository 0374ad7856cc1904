"""Every page in Chromium at its extremes and for everybody: nothing fails, and hostile text stays text.

A `Visitor` also fails a test in which the console shows an error or a request goes to another machine.
"""

import re
from urllib.parse import urlencode

import pytest

from model.checkpoints.tokenizer import Tokenizer
from pages import Page
from tests.browser.access import check_charts_have_names, check_keyboard, check_phone, check_widths, complaints
from tests.browser.conftest import Visitor, query
from tests.browser.test_app import ALL_PAGES, path

SOURCE = (
    "<img src=x onerror=hit=1><svg onload=hit=1> [go](javascript:hit=1) ![i](x.png) $x^2$ "
    ":red[r] \u202eabc\x01 {{7*7}} %{x}"
)
TARGET = (
    '<script>hit=1</script> <iframe srcdoc=x></iframe><a href="javascript:hit=1">a</a> $$y$$ `c` **b** '
    "<b onclick=x>b</b>"
)
INJECTED = """() => {
  const all = (what) => everything().filter((node) => node.matches(what));
  return Object.entries({
    hit: window.hit ?? 0,
    handlers: all('[onerror], [onload], [onclick]').length,
    script: all('[data-testid=stApp] script').length,
    iframe: all('iframe').length,
    image: all('img').filter((node) => /x(\\.png)?$/.test(node.getAttribute('src') ?? '')).length,
    link: all('a').filter((node) => /javascript:/.test(node.getAttribute('href') ?? '')).length,
    formula: all('.katex annotation').filter((node) => ['x^2', 'y'].includes(node.textContent.trim())).length,
    exception: all('[data-testid=stException]').length,
  }).filter(([, count]) => count > 0);
}"""


def move_sliders(visitor: Visitor, key: str) -> None:
    """Each slider of the page, Streamlit's and our own, to the end where the key "Home" or "End" goes."""
    sliders = visitor.page.get_by_test_id("stMain").locator("[role=slider], input[type=range]")
    for number in range(sliders.count()):
        # A slider may be gone by now: another one decides how many there are.
        if number < sliders.count() and sliders.nth(number).is_visible():
            sliders.nth(number).focus()
            visitor.page.keyboard.press(key)
            visitor.settle()


def type_both(visitor: Visitor, source: str, target: str) -> None:
    """Source sentence and own translation; the second one cuts the first one's run short."""
    for label, key, text in (("Source sentence", "source", source), ("Your own translation", "typed", target)):
        box = visitor.page.get_by_role("textbox", name=label)
        box.fill(text)
        box.press("Control+Enter")
        visitor.page.wait_for_function(
            "([key, text]) => new URLSearchParams(location.search).get(key)?.startsWith(text)", arg=[key, text[:60]]
        )
    visitor.settle()


def choose_another_place(visitor: Visitor) -> None:
    """The sidebar's layer and head, where the page has a use for them: what is chosen stays chosen, page and link."""
    for name in ("Layer", "Head"):
        slider = visitor.page.get_by_test_id("stSidebar").get_by_role("slider", name=re.compile(rf"^{name}\b"))
        if slider.is_enabled() and slider.get_attribute("aria-disabled") != "true":
            slider.focus()
            slider.press("ArrowRight" if slider.input_value() == "0" else "ArrowLeft")
            # The page may take back in another run what it was told: `settle` waits for that one, too.
            visitor.settle()
            assert query(visitor).get(name.lower(), "0") == slider.get_attribute("aria-valuetext"), name


def reset(visitor: Visitor) -> None:
    visitor.page.get_by_test_id("stSidebar").get_by_role("button", name="Reset").click()
    visitor.page.wait_for_function("!location.search.includes('source=')")
    visitor.settle()


def brightness(visitor: Visitor) -> float:
    """Of the app's background, 0 to 255."""
    background = visitor.page.locator("[data-testid=stApp]").evaluate("app => getComputedStyle(app).backgroundColor")
    return sum(map(int, background.removeprefix("rgb(").removesuffix(")").split(",")[:3])) / 3


@pytest.mark.parametrize("page", ALL_PAGES, ids=path)
def test_a_page_survives_its_extremes_and_is_for_everybody(
    page: Page, server: str, visitor: Visitor, tokenizer: Tokenizer
) -> None:
    """One visit: a hundred hostile tokens and every slider at its last end, one token and its first end, then a reset,
    and what its visitors need: keyboard, names, contrast in both schemes, room at every width.

    Every other page is opened in the dark scheme, and at other widths. tests/pages/test_extremes.py has both ends at
    every length.
    """
    assert all(100 <= len(tokenizer.encode(text)) < 127 for text in (SOURCE, TARGET)), "long, and fits into one run"
    turn = ALL_PAGES.index(page)
    schemes = ["light", "dark"] if turn % 2 else ["dark", "light"]
    visitor.page.emulate_media(color_scheme=schemes[0])
    asked = {"source": SOURCE, "target": "Typed", "typed": TARGET}
    asked |= {"kind": "Decoder self", "layer": "1", "head": "3"}
    visitor.visit(f"{server}/{path(page)}?{urlencode(asked)}")
    assert (brightness(visitor) > 200) == (schemes[0] == "light")
    move_sliders(visitor, "End")
    assert visitor.page.evaluate(INJECTED) == []
    type_both(visitor, "A", "A")
    choose_another_place(visitor)
    move_sliders(visitor, "Home")
    assert visitor.page.get_by_text(re.compile("checks hold|The picture is the model")).is_visible()
    assert visitor.page.evaluate(INJECTED) == []
    reset(visitor)
    # Menu and sidebar are the same on every page.
    check_keyboard(visitor, "[data-testid=stMain]" if path(page) else "a:has-text('Skip to main content')")
    assert complaints(visitor) == []
    visitor.change_scheme(schemes[1])
    assert (brightness(visitor) > 200) == (schemes[1] == "light")
    assert complaints(visitor, runOnly=["color-contrast"]) == []
    check_charts_have_names(visitor)
    # The last width is a phone's.
    check_widths(visitor, turn)
    check_phone(visitor)


PICTURES = ".stPlotlyChart, [data-testid=stBidiComponentRegular], [data-testid=stBidiComponentIsolated]"
BREAKS = """(nodes) => nodes.filter((node) => node.checkVisibility() && node.getBoundingClientRect().height > 150)
  .map((node) => [node, ...Array.from({ length: 4 }, () => (node = node.parentElement))])
  .map((around) => around.some((each) => getComputedStyle(each).breakInside === 'avoid'))"""


@pytest.mark.parametrize("name", ["masks", "whole_model"])
def test_on_paper_a_dark_page_is_light_and_whole_pictures_are_all_there_is(
    name: str, server: str, visitor: Visitor
) -> None:
    """A picture of Plotly's and one of our own: without the menu, the sidebar, and page breaks inside."""
    visitor.page.emulate_media(color_scheme="dark")
    visitor.visit(f"{server}/{name}?source=a+dog")
    visitor.page.emulate_media(media="print", color_scheme="dark")
    visitor.page.wait_for_function("getComputedStyle(document.querySelector('.stApp > *')).colorScheme === 'light'")
    assert brightness(visitor) > 200
    for hidden in ("stSidebar", "stHeader"):
        assert not any(each.is_visible() for each in visitor.page.get_by_test_id(hidden).all())
    kept_whole = visitor.page.get_by_test_id("stMain").locator(PICTURES).evaluate_all(BREAKS)
    assert kept_whole
    assert all(kept_whole)


def test_hostile_text_that_is_typed_stays_text_and_goes_along_to_other_pages(server: str, visitor: Visitor) -> None:
    visitor.visit(f"{server}/?{urlencode({'target': 'Typed', 'typed': 'Ein'})}")
    type_both(visitor, SOURCE, TARGET)
    assert visitor.page.evaluate(INJECTED) == []
    visitor.page.locator(".cards a").filter(has_text=ALL_PAGES[1].title).click()
    visitor.page.get_by_role("heading", name=ALL_PAGES[1].heading).wait_for()
    visitor.settle()
    assert SOURCE[:60] in visitor.page.get_by_role("textbox", name="Source sentence, English").input_value()
    assert visitor.page.evaluate(INJECTED) == []
