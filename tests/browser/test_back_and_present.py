"""Back undoes one act; a picture that fills the screen, and the keys that lead through it."""

import pytest

from tests.browser.conftest import Visitor, query

PROJECTOR = {"width": 1280, "height": 720}
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
    return walk(document.querySelector('.st-key-present-stage'))
        .filter((node) => !node.matches('style, script, .spoken') && seen(node)).flatMap(texts)
        .filter(([, text]) => text.trim());
}"""
"""[pixels of the screen, text] of all that is written in the picture"""


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
