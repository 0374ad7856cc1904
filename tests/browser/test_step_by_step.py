"""Attention, step by step, in Chromium: buttons, keys, clicks, and the numbers that are read there."""

import re
from urllib.parse import urlencode

import numpy as np
import pytest

from model.checkpoints.translator import Translator
from model.trace import Attention
from tests.browser.conftest import Visitor, heading_of, query
from tests.pages.figures import read_number
from viz.latex import number
from viz.steps.strips import number_texts

SENTENCE = "a dog and a cat"
SYMBOLS = {
    1: "X WQ bQ Q X WK bK K X WV bV V",
    2: "Q KT scores",
    3: "scores scaled",
    4: "scaled mask masked",
    5: "masked weights",
    6: "weights V z1",
    7: "concat(z) WO bO out z1 WO,1 out1",
}
LENGTHS = {"one": "a", "hundred": "dog and cat a " * 14}


@pytest.fixture
def attention(translator: Translator) -> Attention:
    """Of the layer that the page shows."""
    return translator.trace(SENTENCE).attention("cross", 1)


def open_step(visitor: Visitor, server: str, step: int, source: str = SENTENCE, **query: str) -> None:
    asked = {"source": source, "kind": "Cross", "layer": "1", "head": "1", "step": str(step)} | query
    visitor.visit(f"{server}/attention_step_by_step?{urlencode(asked)}")
    visitor.page.locator(".stage canvas").first.wait_for()


def wait_for_step(visitor: Visitor, step: int) -> None:
    visitor.page.wait_for_function(
        """symbols => [...document.querySelectorAll('[data-testid=stBidiComponentIsolated]')].some(host =>
            [...(host.shadowRoot?.querySelectorAll('.symbol') ?? [])]
                .map(node => node.textContent).join(' ').replaceAll('Y', 'X') === symbols)""",
        arg=SYMBOLS[step],
    )
    visitor.settle()


def click_cell(visitor: Visitor, symbol: str, row: int, column: int, rows: int, columns: int) -> None:
    """In the middle of a cell: the cells fill the canvas but for its margins, whose bottom and right are known."""
    canvas = visitor.page.locator(f"canvas[data-symbol='{symbol}']")
    left, top, width, height = map(float, canvas.get_attribute("data-cells").split())
    canvas.click(position={"x": left + (column + 0.5) * width / columns, "y": top + (row + 0.5) * height / rows})


def cells(visitor: Visitor, strip: int, label: str) -> list[str]:
    """The numbers of one line of a strip, across all its pieces."""
    lines = visitor.page.locator(".arithmetic figure").nth(strip).locator("tr", has=visitor.page.get_by_text(label))
    return [text for line in lines.all() for text in line.locator("td").all_inner_texts()]


def test_a_click_on_the_label_of_a_row_or_of_a_column_chooses_its_token(
    server: str, visitor: Visitor, attention: Attention
) -> None:
    """The words of a matrix act as its cells do."""
    rows, columns = attention.scores.shape[-2:]
    open_step(visitor, server, 2)
    canvas = visitor.page.locator("canvas[data-symbol='scores']")
    left, top, width, height = map(float, canvas.get_attribute("data-cells").split())
    canvas.click(position={"x": left - 8, "y": top + 2.5 * height / rows})
    visitor.page.get_by_text("query 2 (").first.wait_for()
    canvas.click(position={"x": left + 3.5 * width / columns, "y": top - 6})
    visitor.page.get_by_text("times key 3 (").first.wait_for()
    visitor.settle()
    assert visitor.page.get_by_text("query 2 (").first.is_visible()


def test_the_seven_steps_by_button_and_by_key_which_stays_with_whoever_types(server: str, visitor: Visitor) -> None:
    """The last step is saved as a picture; a presentation of a step is one screen of formula, matrices and Next."""
    visitor.page.set_viewport_size({"width": 1280, "height": 720})
    open_step(visitor, server, 1)
    wait_for_step(visitor, 1)
    visitor.page.get_by_role("textbox", name="Source sentence").press("ArrowRight")
    visitor.page.get_by_role("spinbutton", name="Dimension of the head").press("ArrowRight", no_wait_after=True)
    visitor.page.get_by_role("heading", name=heading_of("Queries, keys and values")).click()
    visitor.page.keyboard.press("ArrowRight")
    wait_for_step(visitor, 2)
    for step in (3, 4):
        visitor.page.get_by_role("button", name="Next", exact=True).click()
        wait_for_step(visitor, step)
    for step in (5, 6, 7):
        visitor.page.keyboard.press("ArrowRight")
        wait_for_step(visitor, step)
    with visitor.page.expect_download() as download:
        visitor.page.get_by_role("button", name="Download the picture").click()
    assert re.fullmatch(r"en-de-\w{8}-Cross-attention-layer-1-head-1-step-7-.*\.png", download.value.suggested_filename)
    assert download.value.path().read_bytes().startswith(b"\x89PNG")
    visitor.page.get_by_role("heading", name=heading_of("Queries, keys and values")).click()
    visitor.page.keyboard.press("ArrowRight")
    visitor.page.get_by_role("button", name="Back", exact=True).click()
    wait_for_step(visitor, 6)
    for _ in range(3):
        visitor.page.keyboard.press("ArrowLeft")
    wait_for_step(visitor, 3)
    assert "step=3" in visitor.page.url
    visitor.page.get_by_role("button", name="Step 5: weight").click()
    wait_for_step(visitor, 5)
    visitor.page.keyboard.press("ArrowLeft")
    wait_for_step(visitor, 4)
    check_presentation(visitor)


def check_presentation(visitor: Visitor) -> None:
    """Of the step after the present one, from a page that was scrolled down."""
    visitor.page.get_by_test_id("stMain").evaluate("main => main.scrollTo(0, 300)")
    visitor.page.get_by_role("button", name="Present", exact=True).click()
    visitor.page.get_by_text("checks hold").wait_for(state="detached")
    visitor.page.get_by_text("4 of 7").wait_for()
    assert "present=true" in visitor.page.url
    visitor.page.keyboard.press("ArrowRight")
    visitor.page.get_by_text("5 of 7").wait_for()
    shown = visitor.page.locator(".st-key-present-row, .st-key-present-words .katex-display, .stage")
    assert all(
        box["y"] >= 0 and box["y"] + box["height"] <= 720 for box in (each.bounding_box() for each in shown.all())
    )
    for hidden in ("stSidebar", "stHeader", "stHeading", "stExpander"):
        assert not any(each.is_visible() for each in visitor.page.get_by_test_id(hidden).all())
    visitor.page.keyboard.press("Escape")
    visitor.page.get_by_text("checks hold").wait_for()
    visitor.settle()


def test_numbers_by_chain_key_pointer_temperature_and_click_are_the_traces(
    server: str, visitor: Visitor, attention: Attention
) -> None:
    open_step(visitor, server, 5, cell="2-3-4-5")
    check_chain(visitor, attention)
    check_keys(visitor, attention)
    check_pointer_and_temperature(visitor, attention)
    check_click(visitor, attention)


def check_click(visitor: Visitor, attention: Attention) -> None:
    """A click on a cell of another step shows its arithmetic."""
    visitor.page.get_by_role("button", name="Step 2: ").click()
    wait_for_step(visitor, 2)
    rows, columns = attention.scores.shape[1:]
    i, j = rows - 1, 3
    click_cell(visitor, "scores", i, j, rows, columns)
    visitor.page.get_by_text(f"times key {j} (").wait_for()
    visitor.settle()
    assert visitor.page.get_by_text(f"query {i} (").first.is_visible()
    q, k = attention.q[1, i], attention.k[1, j]
    assert cells(visitor, 0, f"q, row {i}") == number_texts(q)
    assert cells(visitor, 0, f"k, row {j}") == number_texts(k)
    assert [t for t in cells(visitor, 0, "product") if t] == number_texts(q.astype(float) * k)
    result = visitor.page.locator(".arithmetic .result").inner_text()
    assert result == f"sum = score = {number(attention.scores[1, i, j], 5)}"
    address = query(visitor)
    assert [address[key].split()[0] for key in ("query", "key")] == [str(i), str(j)]
    assert (address["cell_dimension"], address["cell_output"]) == ("4", "5")
    assert visitor.page.get_by_role("combobox", name="Query").input_value().startswith(f"{i} ")
    # A click on the name of a row chooses its token as well.
    canvas = visitor.page.locator("canvas[data-symbol='scores']")
    left, top, _, height = map(float, canvas.get_attribute("data-cells").split())
    canvas.click(position={"x": left - 8, "y": top + 1.5 * height / rows})
    visitor.page.get_by_text("query 1 (").first.wait_for()
    visitor.settle()
    assert [query(visitor)[key].split()[0] for key in ("query", "key")] == ["1", str(j)]


def check_chain(visitor: Visitor, attention: Attention) -> None:
    """The chain from the scores to the output holds the trace's numbers of the chosen cell."""
    shown = visitor.page.locator(".chain .value").all_inner_texts()
    assert shown[1] == number(attention.scores[1, 2, 3])
    assert shown[2] == number(attention.scaled[1, 2, 3])
    assert shown[3] == "not masked"
    assert shown[4] == number(attention.pattern[1, 2, 3])
    assert shown[6] == number(attention.out[2, 5])
    assert cells(visitor, 0, "weight") == number_texts(attention.pattern[1, 2])


def check_keys(visitor: Visitor, attention: Attention) -> None:
    """Arrow keys find a cell, its number is said, and in the dark Enter chooses it and keeps the focus."""
    weights, said = visitor.page.locator("canvas[data-symbol=weights]"), visitor.page.locator(".matrices .spoken")
    visitor.page.locator("canvas[data-symbol=masked]").press("PageDown")
    weights.press("ArrowLeft")
    symbol, value, query, key = said.text_content().split(", ", 3)
    assert (symbol, query[:7], key[:5]) == ("weights", "query 2", "predi") or key.startswith("key 2")
    assert read_number(value) == pytest.approx(attention.pattern[1, 2, 2], rel=1e-5)
    visitor.change_scheme("dark")
    weights.press("Enter")
    visitor.page.wait_for_function("location.search.includes('key=2+')")
    visitor.settle()
    assert weights.evaluate("canvas => canvas === canvas.getRootNode().activeElement")
    assert visitor.page.locator(".matrices [tabindex='0']").count() == 1


def point_at_weight(visitor: Visitor, attention: Attention, row: int, column: int) -> tuple[float, str]:
    """The weight that is said under the pointer, and everything that is said there."""
    canvas = visitor.page.locator("canvas[data-symbol=weights]")
    left, top, width, height = map(float, canvas.get_attribute("data-cells").split())
    rows, columns = attention.pattern.shape[1:]
    canvas.hover(position={"x": left + (column + 0.5) * width / columns, "y": top + (row + 0.5) * height / rows})
    said = visitor.page.locator(".tip").inner_text()
    return read_number(re.search(rf"weights\[{row}, {column}\] = (\S+(?: · 10\S+)?)", said)[1]), said


def check_pointer_and_temperature(visitor: Visitor, attention: Attention) -> None:
    """Hovering says the exact number and what the row reads; another temperature is drawn again and says so."""
    value, said = point_at_weight(visitor, attention, 2, 1)
    assert value == pytest.approx(attention.pattern[1, 2, 1], rel=1e-5)
    assert " → " in said
    visitor.page.get_by_label("Temperature redrawn in the browser").fill("0.3")
    visitor.page.get_by_text("redrawn from this head's scores").wait_for()
    value, _ = point_at_weight(visitor, attention, 0, 0)
    powers = np.exp(attention.scaled[1, 0].astype(float) / 10**0.3)
    assert value == pytest.approx(powers[0] / powers.sum(), rel=1e-5)
    assert visitor.page.locator(".chain .value").nth(4).inner_text() == number(attention.pattern[1, 2, 2])
    visitor.page.get_by_role("button", name="Back to the run").click()
    assert visitor.page.get_by_text("as in the run").is_visible()


@pytest.mark.parametrize(("length", "scheme"), [("one", "light"), ("hundred", "dark")])
def test_sentences_of_any_length_fit_and_nothing_below_the_picture_moves_between_steps(
    length: str, scheme: str, server: str, visitor: Visitor
) -> None:
    visitor.page.emulate_media(color_scheme=scheme)
    kind, source = "Decoder self", LENGTHS[length].strip()
    open_step(visitor, server, 1, source, kind=kind, target="Typed", typed=source)
    heading = visitor.page.get_by_role("heading", name="The arithmetic of one cell")
    places = set()
    for step in range(1, 8):
        wait_for_step(visitor, step)
        places.add(round(heading.bounding_box()["y"]))
        assert visitor.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        ink = visitor.page.locator(".stage canvas").first.evaluate(
            "canvas => new Set(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data).size"
        )
        assert ink > 3
        visitor.page.keyboard.press("ArrowRight")
    assert max(places) - min(places) <= 2


@pytest.mark.parametrize("step", [1, 4, 7])
def test_the_matrices_fit_their_place_at_any_width(step: int, server: str, visitor: Visitor) -> None:
    open_step(visitor, server, step)
    for width in (1920, 1280, 1100, 1024, 984, 768, 683, 640, 390):
        visitor.page.set_viewport_size({"width": width, "height": 800})
        visitor.page.wait_for_function(
            """() => [...document.querySelectorAll('[data-testid=stBidiComponentIsolated]')].some(host => {
                const stage = host.shadowRoot?.querySelector('.matrices .stage');
                return stage && stage.scrollWidth <= stage.clientWidth; })""",
            timeout=5000,
        )
