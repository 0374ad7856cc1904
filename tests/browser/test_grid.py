"""What pictures of cells share, in Chromium: keys and pointer, what is read out, canvases as sharp as the screen."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pytest

from model.checkpoints.translator import Translator
from model.run import Run
from model.trace import Trace
from pages.views.attention import attention_step_by_step as steps
from pages.views.attention import temperature
from pages.views.explore import translate
from pages.views.model import whole_model
from viz import notebook
from viz.canvas.long_map import LongWindow, long_map
from viz.drawing import Drawing, html_page, mounting_scripts

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

TOKENS = [f"tok{place}" for place in range(64)]
MARKS = ".layers > :nth-child(2)"
SHARPNESS = """() => {
  const root = document.getElementById('picture-0').shadowRoot;
  const seen = [...root.querySelectorAll('canvas:not(.legend canvas)')].filter((each) => each.clientWidth);
  return seen.map((each) => ['width', 'height'].map((side) => {
    const shown = each.getBoundingClientRect()[side] * devicePixelRatio;
    return Math.abs(each[side] - shown);
  })).flat();
}"""
"""by how many pixels the sides of each canvas differ from those of the screen on which it is shown"""
SAVE = """() => new Promise((done) => {
  URL.createObjectURL = (blob) => { blob.text().then(done); return 'data:,'; };
  HTMLAnchorElement.prototype.click = () => {};
  const detail = { format: 'svg', file: 'picture', caption: [] };
  document.getElementById('picture-0').shadowRoot.querySelector('.component')
    .dispatchEvent(new CustomEvent('save-picture', { detail }));
})"""
"""the SVG file that the page's export box asks for"""


@pytest.fixture(scope="module")
def run(translator: Translator) -> Run:
    trace: Trace = translator.trace("a dog and a cat", target="Ein Hund mit einer Katze.")
    return Run.of(translator, trace, "decoder_self", 1, 2)


@pytest.fixture
def show(browser: "Browser") -> Iterator[Callable[[Drawing], "Page"]]:
    """Shows a picture alone on a page, with two pixels of the screen to one of the page."""
    context = browser.new_context(device_scale_factor=2, viewport={"width": 1000, "height": 900})
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))

    def on_page(drawing: Drawing) -> "Page":
        page.set_content(html_page("", f'<div id="picture-0"></div>{mounting_scripts({0: drawing})}'))
        page.locator(f".{drawing.component}.component").wait_for()
        return page

    yield on_page
    context.close()
    assert errors == []


def long_text() -> Drawing:
    """A map of as many tokens as TOKENS; the first has almost all of each query's weight."""
    weights = np.tril(np.full((len(TOKENS), len(TOKENS)), 0.001, np.float32))
    weights[:, 0] = 0.9
    weights[np.triu_indices(len(TOKENS), 1)] = np.nan
    return long_map([LongWindow(weights, 0, 0)], TOKENS, title="a long text")


PICTURES = {
    "mosaic": lambda run: notebook.heads(run.trace).drawings[0],
    "lines": lambda run: notebook.lines(run.trace, "cross", 1).drawings[0],
    "matrices": lambda run: notebook.steps(run.trace, "cross", 1).drawings[4],
    "explore": lambda run: translate.explore(run).shows["explore"].drawing,
    "temperature": lambda run: temperature.live(run).shows["temperature"].drawing,
    "own_vectors": lambda run: steps.own_vectors(run, source="head").shows["vectors"].drawing,
    "whole_model": lambda run: whole_model.figure(run).shows["whole_model"].drawing,
    "long_map": lambda _: long_text(),
}


@pytest.mark.parametrize("name", PICTURES)
def test_every_canvas_has_the_pixels_of_the_screen_also_where_the_picture_is_enlarged(
    name: str, run: Run, show: Callable[[Drawing], "Page"]
) -> None:
    page = show(PICTURES[name](run))
    assert max(page.evaluate(SHARPNESS)) <= 2
    # As Present does: twice as large in the same place.
    page.evaluate("document.getElementById('picture-0').style.zoom = 2")
    page.wait_for_function(f"() => Math.max(...({SHARPNESS})()) <= 2")


def spoken(page: "Page") -> str:
    return page.locator(".spoken").inner_text()


def tip(page: "Page") -> list[str]:
    return page.locator(".tip:visible").inner_text().splitlines()


def focus_by_key(page: "Page", marks: "Locator") -> None:
    """As the Tab key does."""
    page.keyboard.press("Tab")
    marks.focus()


def test_a_cell_that_keys_go_to_is_read_out_and_has_its_tooltip_until_the_focus_leaves(
    run: Run, show: Callable[[Drawing], "Page"]
) -> None:
    page = show(PICTURES["mosaic"](run))
    marks = page.locator(MARKS)
    focus_by_key(page, marks)
    for key, head in (("ArrowRight", 1), ("End", 3), ("ArrowRight", 3), ("Home", 0)):
        page.keyboard.press(key)
        name = f"Encoder self-attention, layer 0, head {head}"
        assert spoken(page).startswith(name)
        assert tip(page)[1] == name
    largest = float(run.trace.attention("encoder_self", 0).pattern[0].max())
    assert float(tip(page)[0].removeprefix("attention weight ")) == pytest.approx(largest, abs=1e-4)
    marks.evaluate("node => node.blur()")
    assert page.locator(".tip").is_hidden()


def test_one_matrix_is_a_tab_stop_and_page_down_goes_to_the_next_one(
    run: Run, show: Callable[[Drawing], "Page"]
) -> None:
    page = show(PICTURES["matrices"](run))
    grids = page.locator("canvas.marks")
    stops = lambda: grids.evaluate_all("all => all.map(({ tabIndex }) => tabIndex)")  # noqa: E731
    assert stops() == [0, -1]
    focus_by_key(page, grids.first)
    page.keyboard.press("PageDown")
    assert stops() == [-1, 0]
    assert spoken(page).startswith("weights, ")
    page.keyboard.press("PageDown")
    assert stops() == [-1, 0]


def test_the_matrices_of_an_opened_box_are_read_by_keys_and_keep_the_focus_when_a_cell_is_chosen(
    run: Run, show: Callable[[Drawing], "Page"]
) -> None:
    page = show(PICTURES["explore"](run))
    page.locator("[data-box=scores]").click()
    grids = page.locator(".detail canvas.marks")
    focus_by_key(page, grids.last)
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    values = run.attention.scores[run.head][:, 0]
    number = tip(page)[0]
    assert spoken(page).startswith(number)
    read = float(number.replace("−", "-"))
    assert np.isclose(values, read, rtol=1e-6).any()
    page.keyboard.press("Enter")
    assert page.evaluate("document.getElementById('picture-0').shadowRoot.activeElement.matches('canvas.marks')")


def test_a_long_map_is_moved_by_keys_also_where_plus_needs_shift(show: Callable[[Drawing], "Page"]) -> None:
    page = show(long_text())
    page.locator(MARKS).focus()
    page.keyboard.press("Shift++")
    assert spoken(page) == "queries 16 to 47, keys 16 to 47"
    page.keyboard.press("ArrowDown")
    assert spoken(page) == "queries 20 to 51, keys 16 to 47"
    page.keyboard.press("0")
    assert spoken(page) == "queries 0 to 63, keys 0 to 63"


def test_a_long_map_is_saved_as_svg_cut_at_its_edges(show: Callable[[Drawing], "Page"]) -> None:
    page = show(long_text())
    page.get_by_role("button", name="Zoom in").click()
    inside = page.evaluate(
        """(svg) => {
          const root = new DOMParser().parseFromString(svg, 'image/svg+xml');
          const [part] = root.querySelectorAll('[clip-path]');
          const id = part.getAttribute('clip-path').slice(5, -1);
          return [part.querySelectorAll('image').length, root.getElementById(id).tagName,
            [...root.querySelectorAll('text')].filter((text) => part.contains(text)).length];
        }""",
        page.evaluate(SAVE),
    )
    assert inside == [1, "clipPath", 0]
