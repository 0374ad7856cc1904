"""Back undoes one act; a picture that fills the screen, and the keys that lead through it."""

from contextlib import suppress
from urllib.parse import urlencode

import pytest
from playwright.sync_api import TimeoutError as TooLong

from pages import Page
from tests.browser.conftest import Visitor, query
from tests.browser.test_app import ALL_PAGES, path

PROJECTOR = {"width": 1280, "height": 720}
LARGER = {"width": 1920, "height": 1080}
PLOTLY, OURS = "masks", ("", "heads_and_layers", "temperature", "whole_model", "attention_step_by_step")


def step(visitor: Visitor) -> str:
    return visitor.page.get_by_role("slider", name="Step").input_value()


def wait_for_step(visitor: Visitor, number: str) -> None:
    visitor.page.wait_for_function("wanted => new URLSearchParams(location.search).get('step') === wanted", arg=number)
    visitor.settle()


def test_back_goes_one_step_back_and_the_sentence_stays(server: str, visitor: Visitor) -> None:
    visitor.visit(f"{server}/attention_step_by_step")
    for number in "234":
        visitor.page.get_by_role("button", name="Next").click()
        wait_for_step(visitor, number)
    sentence = visitor.page.get_by_role("textbox", name="Source sentence")
    sentence.fill("A dog.")
    sentence.press("Enter")
    visitor.page.wait_for_function("location.search.includes('source')")
    visitor.settle()
    for number in "32":
        visitor.page.go_back()
        wait_for_step(visitor, number)
        assert step(visitor) == number
        assert sentence.input_value() == "A dog."
    visitor.page.go_forward()
    wait_for_step(visitor, "3")
    assert query(visitor) == {"source": "A dog.", "step": "3"}


def test_back_returns_to_the_tab_before(server: str, visitor: Visitor) -> None:
    visitor.visit(f"{server}/masks")
    for title in ("Padding", "Lift the causal mask"):
        visitor.page.get_by_role("tab", name=title).click()
        visitor.page.wait_for_function(
            "title => decodeURIComponent(location.search).includes(title.slice(0, 4))", arg=title
        )
        visitor.settle()
    visitor.page.go_back()
    visitor.page.get_by_role("tab", name="Padding", selected=True).wait_for()
    visitor.settle()
    assert query(visitor) == {"part": "Padding"}


WRITTEN = """(() => {
    if (window.written) return;
    window.written = new WeakMap();
    const width = Object.getOwnPropertyDescriptor(HTMLCanvasElement.prototype, "width");
    const set = function (pixels) { written.set(this, []); width.set.call(this, pixels); };
    Object.defineProperty(HTMLCanvasElement.prototype, "width", { ...width, set });
    const write = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
        const { a, b } = this.getTransform();
        written.get(this.canvas)?.push([parseFloat(this.font.match(/([\\d.]+)px/)[1]) * Math.hypot(a, b), text]);
        return write.call(this, text, ...rest);
    };
})()"""
"""notes what is written on each canvas since it was sized, and in how many of its pixels"""
SIZES = """() => {
    const inside = (node) => [node, ...(node.shadowRoot ? walk(node.shadowRoot) : [])];
    const walk = (root) => [...root.querySelectorAll('*')].flatMap(inside);
    const seen = (node) => node.checkVisibility({ visibilityProperty: true }) && node.getBoundingClientRect().width > 1;
    const own = (node) => [...node.childNodes].some((one) => one.nodeType === 3 && one.textContent.trim());
    const texts = (node) => [
        ...(own(node) ? [[parseFloat(getComputedStyle(node).fontSize), node.textContent]] : []),
        ...(written.get(node) ?? []),
    ].map(([size, text]) => [Math.round(size * (node.currentCSSZoom ?? 1) * 10) / 10, String(text)]);
    const unseen = 'style, script, .spoken, .katex-mathml *, .vlist-s';
    return walk(document.querySelector('[data-testid=stMain]'))
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
        ...(SIZES)().filter(([size]) => size < 16).map(([size, text]) => `${size}: ${text}`),
    ];
}""".replace("SIZES", SIZES)
"""what does not fit a projector; of a text, on any of its screens"""
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


@pytest.mark.parametrize("name", [PLOTLY, *OURS])
def test_a_picture_fills_the_screen_until_escape(name: str, server: str, visitor: Visitor) -> None:
    visitor.page.set_viewport_size(PROJECTOR)
    visitor.page.add_init_script(WRITTEN)
    visitor.visit(f"{server}/{name}?source=a+dog+and+a+cat")
    visitor.page.get_by_role("button", name="Present", exact=True).click()
    stage = visitor.page.locator(".st-key-present-stage")
    stage.wait_for()
    visitor.page.wait_for_function(
        """() => { const stage = document.querySelector('.st-key-present-stage');
            const own = stage?.querySelector('[data-testid^=stBidi]');
            const drawn = stage?.querySelector('.js-plotly-plot .main-svg');
            const box = (own ?? drawn)?.getBoundingClientRect();
            return box && box.height > 300 && box.bottom <= innerHeight && (!own || own.style.zoom >= 1.4); }"""
    )
    main = visitor.page.get_by_test_id("stMain")
    assert main.evaluate("main => main.scrollHeight <= main.clientHeight")
    shown = visitor.page.evaluate(SIZES)
    assert len(shown) > 10
    assert [text for size, text in shown if size < 16] == []
    for hidden in ("stSidebar", "stHeader"):
        assert not any(each.is_visible() for each in visitor.page.get_by_test_id(hidden).all())
    if name:  # the home page has no tabs
        visitor.page.keyboard.press("ArrowRight")
        visitor.page.get_by_text("2 of ").wait_for()
    visitor.page.keyboard.press("Escape")
    visitor.page.locator(".st-key-present-row").wait_for(state="detached")
    visitor.settle()
    assert "present" not in query(visitor)
    visitor.page.locator("[data-testid=stTopNavSection][data-current]").wait_for()


def check_fits(visitor: Visitor) -> None:
    # A picture is drawn in several sizes until one fits.
    with suppress(TooLong):
        visitor.page.wait_for_function(f"!({UNFIT})().length")
    assert visitor.page.evaluate(UNFIT) == []


@pytest.mark.parametrize("page", ALL_PAGES, ids=path)
def test_every_page_fits_a_projector_with_no_label_under_16_pixels(page: Page, server: str, visitor: Visitor) -> None:
    """Its first tab; the arrow keys lead through the screens of a text before they lead to the next tab."""
    visitor.page.set_viewport_size(PROJECTOR)
    visitor.page.add_init_script(WRITTEN)
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
    visitor.page.add_init_script(WRITTEN)
    visitor.visit(f"{shipped_server}/{name}?{urlencode(asked)}")
    check_fits(visitor)


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
