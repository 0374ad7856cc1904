"""A picture that fills the screen, and the keys that lead through it."""

from contextlib import suppress
from io import BytesIO
from urllib.parse import urlencode

import pytest
from PIL import Image
from playwright.sync_api import TimeoutError as TooLong

from pages import Page
from tests.browser.conftest import Visitor, query
from tests.browser.test_app import ALL_PAGES, path

PROJECTOR = {"width": 1280, "height": 720}
LARGER = {"width": 1920, "height": 1080}
SCREENS = ({"width": 1024, "height": 768}, PROJECTOR, LARGER, {"width": 3840, "height": 2160})
OURS = ("", "heads_and_layers", "temperature", "whole_model", "attention_step_by_step")
SCALE = "Math.max(Math.min(innerWidth / 1280, innerHeight / 720), 1)"
"""by how much everything is larger on a screen that is larger than the smallest"""
SIZES = """() => {
    const seen = (node) => node.checkVisibility({ visibilityProperty: true }) && node.getBoundingClientRect().width > 1;
    const own = (node) => [...node.childNodes].some((one) => one.nodeType === 3 && one.textContent.trim());
    const texts = (node) => [
        ...(own(node) ? [[parseFloat(getComputedStyle(node).fontSize), node.textContent]] : []),
        ...drawnOn(node).map(({ size, text }) => [size, text]),
    ].map(([size, text]) => [Math.round(size * enlarged(node) * 10) / 10, String(text)]);
    const enlarged = (node) => node.currentCSSZoom ?? 1;
    const unseen = 'style, script, .spoken, .katex-mathml *, .vlist-s';
    return everything(document.querySelector('[data-testid=stMain]'))
        .filter((node) => !node.matches(unseen) && seen(node)).flatMap(texts)
        .filter(([, text]) => text.trim());
}"""
"""[pixels of the screen, text] of all that is written on it"""
UNFIT = """() => {
    const main = document.querySelector('[data-testid=stMain]');
    const formulas = [...main.querySelectorAll('.katex')].filter((node) => node.checkVisibility());
    return [
        ...((SIZES)().length > 3 ? [] : ['nothing is written']),
        ...(main.scrollHeight > main.clientHeight ? [`${main.scrollHeight - main.clientHeight} pixels too high`] : []),
        ...formulas.filter((node) => node.getBoundingClientRect().width < 8).map(() => 'an empty formula'),
        ...(SIZES)().filter(([size]) => size < 15.9 * SCALE).map(([size, text]) => `${size}: ${text}`),
    ];
}""".replace("SIZES", SIZES).replace("SCALE", SCALE)
"""what does not fit a projector; of a text, on any of its screens. On a larger screen labels keep their share of it"""
PIECES = """[...document.querySelectorAll(`.st-key-present-text :is(
        p, tr, pre, .katex-display, .stPlotlyChart, [data-testid^=stBidi])`)]
    .filter((node) => node.checkVisibility() && node.offsetHeight && !node.parentElement.closest('pre'))"""
"""lines and pictures of a text"""
READ = """() => {
    const [high, low] = [({ top }) => top, ({ bottom }) => bottom].map((side) =>
        side(document.querySelector('.st-key-present-text').getBoundingClientRect()));
    const pieces = PIECES.map((node) => [node.textContent, node.getBoundingClientRect()]);
    const shown = ([, { top, bottom }]) => bottom > high + 2 && top < low - 2;
    const cut = (piece) => shown(piece) && (piece[1].top < high - 2 || piece[1].bottom > low + 2);
    const numbers = pieces.flatMap((piece, number) => (shown(piece) ? [number] : []));
    const box = document.querySelector('.st-key-present-text');
    const charts = [...box.querySelectorAll('.stPlotlyChart')].map((node) => node.getBoundingClientRect());
    const filled = parseFloat(box.style.maxHeight) > 0.94 * parseFloat(box.style.getPropertyValue('--stage'));
    const white = !filled && charts.some(({ top, bottom, height }) => height && bottom > high + 2 && top < low - 2);
    return [numbers, pieces.filter(cut).map(([text]) => text), pieces.length, white];
}""".replace("PIECES", PIECES)
"""numbers of the pieces on the screen, what is cut of them, how many there are on all screens, and whether a chart
leaves much of the screen white"""


def test_what_is_presented_leads_on_by_a_key_and_back_by_escape(server: str, visitor: Visitor) -> None:
    """From the button; test_step_by_step.py sees that nothing else is left on the screen."""
    visitor.page.set_viewport_size(PROJECTOR)
    visitor.visit(f"{server}/masks?source=a+dog+and+a+cat")
    visitor.page.get_by_role("button", name="Present", exact=True).click()
    visitor.page.wait_for_function(
        """() => {
          const chart = document.querySelector(".st-key-present-stage .js-plotly-plot .main-svg");
          const box = chart?.getBoundingClientRect();
          return box && box.height > 300 && box.bottom <= innerHeight;
        }"""
    )
    check_fits(visitor)
    visitor.page.keyboard.press("ArrowRight")
    visitor.page.get_by_text("2 of ").wait_for()
    visitor.page.keyboard.press("Escape")
    visitor.page.locator(".st-key-present-row").wait_for(state="detached")
    visitor.settle()
    assert "present" not in query(visitor)
    visitor.page.locator("[data-testid=stTopNavSection][data-current]").wait_for()


AT_REST = f"""() => {{
    window.fitting = ({UNFIT})().length ? 0 : (window.fitting ?? 0) + 1;
    return window.fitting >= 5;
}}"""
"""whether everything has fitted five times, one after the other"""


def check_fits(visitor: Visitor) -> None:
    # A picture is drawn in several sizes until one fits, and Plotly draws a chart again as its letters grow.
    visitor.settle()
    visitor.page.evaluate("window.fitting = 0")
    with suppress(TooLong):
        visitor.page.wait_for_function(AT_REST, polling=100)
        return
    assert visitor.page.evaluate(UNFIT) == []
    pytest.fail("the picture does not come to rest")


@pytest.mark.parametrize("page", ALL_PAGES, ids=path)
def test_every_page_fits_a_projector_with_no_label_under_16_pixels(page: Page, server: str, visitor: Visitor) -> None:
    """Its first tab; the arrow keys lead through the screens of a text before they lead to the next tab."""
    visitor.page.set_viewport_size(PROJECTOR)
    visitor.visit(f"{server}/{path(page)}?source=a+dog+and+a+cat&present=true")
    check_fits(visitor)
    if visitor.page.locator(".st-key-present-text").is_visible():
        check_all_is_read(visitor)
    visitor.page.set_viewport_size(LARGER)
    check_fits(visitor)


@pytest.mark.parametrize(
    ("name", "checkpoint", "source"),
    [("continue_text", "everyday-lm", "The old man went to the"), ("fill_in", "everyday-mlm", "She reads a <mask>.")],
)
def test_pages_of_other_families_fit_a_projector_too(
    name: str, checkpoint: str, source: str, shipped_server: str, visitor: Visitor
) -> None:
    asked = {"checkpoint": checkpoint, "source": source, "present": "true"}
    visitor.page.set_viewport_size(PROJECTOR)
    visitor.visit(f"{shipped_server}/{name}?{urlencode(asked)}")
    check_fits(visitor)


STAGE = """() => {
    const top = document.querySelector('.st-key-present-row').getBoundingClientRect().bottom;
    const own = document.querySelector('.st-key-present-stage [data-testid^=stBidi]').getBoundingClientRect();
    return [Math.ceil(top), own.bottom <= innerHeight];
}"""
SHARPNESS = """() => {
    const drawn = (node) => node.tagName === 'CANVAS' && !node.closest('.legend');
    return everything(document.querySelector('.st-key-present-stage'))
        .filter((node) => drawn(node) && node.getBoundingClientRect().width > 20)
        .map((node) => Math.abs(node.width - node.getBoundingClientRect().width * devicePixelRatio));
}"""
"""by how many pixels each canvas is wider or narrower than its place on the screen"""
SHARE = 0.85


def share_of_screen(visitor: Visitor, top: int) -> float:
    """Of the width or of the height below the row, whichever is larger: what is not background."""
    screen = Image.open(BytesIO(visitor.page.screenshot())).convert("L")
    stage = screen.crop((0, top + 1, *screen.size))
    left, upper, right, lower = stage.point(lambda grey: 255 * (grey < 235)).getbbox()
    return max((right - left) / stage.width, (lower - upper) / stage.height)


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("words", [5, 40])
def test_a_picture_of_ours_is_drawn_for_the_screen_and_fills_it(
    name: str, words: int, server: str, visitor: Visitor
) -> None:
    """On four screens: as many pixels as the screen has, most of its width or height, and all of it in sight."""
    source = " ".join((["a", "dog", "and", "a", "cat"] * 8)[:words])
    visitor.visit(f"{server}/{name}?{urlencode({'source': source, 'present': 'true'})}")
    for screen in SCREENS:
        visitor.page.set_viewport_size(screen)
        visitor.settle()
        visitor.page.wait_for_function(f"() => ({STAGE})()[1] && Math.max(...({SHARPNESS})()) <= 2")
        top, _ = visitor.page.evaluate(STAGE)
        assert share_of_screen(visitor, top) >= SHARE, screen


def test_lines_of_many_tokens_take_the_screen(server: str, visitor: Visitor) -> None:
    """As many rows as there is room for, and no white below the note."""
    visitor.page.set_viewport_size(PROJECTOR)
    visitor.visit(f"{server}/paper?{urlencode({'paper': 'Figures 3 to 5', 'present': 'true'})}")
    visitor.page.wait_for_function(
        """() => { const { bottom } = document.querySelector(".st-key-present-stage [data-testid^=stBidi]")
            .getBoundingClientRect(); return bottom <= innerHeight && bottom > innerHeight - 48; }"""
    )


def check_all_is_read(visitor: Visitor) -> None:
    """On the screens of a text, to which the arrow keys lead, each line and picture is shown, none in part, and a chart
    takes what the lines leave."""
    way = visitor.page.locator(".way span")
    read: set[int] = set()
    while True:
        # The last picture of a screen may still be drawn in another size.
        with suppress(TooLong):
            visitor.page.wait_for_function(
                f"() => {{ const [, cut, , white] = ({READ})(); return !cut.length && !white; }}"
            )
        shown, cut, count, white = visitor.page.evaluate(READ)
        assert cut == []
        assert not white
        read |= {*shown}
        number, screens = map(int, way.text_content().split("/"))
        if number == screens:
            break
        visitor.page.keyboard.press("ArrowRight")
        visitor.page.wait_for_function(
            "([way, wanted]) => way.textContent.startsWith(wanted)", arg=[way.element_handle(), f"{number + 1} / "]
        )
    assert read == {*range(count)}
