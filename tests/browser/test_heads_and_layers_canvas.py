"""The mosaic and the token lines in Chromium: what is drawn, said and chosen is what was sent."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.browser.conftest import Visitor, serve
from tests.pages.figures import read_number
from viz.theme import colour_scales

if TYPE_CHECKING:
    from playwright.sync_api import Locator

Array = np.ndarray
LAYERS, HEADS = 2, 4
NASTY = "<img src=x onerror=alert(1)>"
SCRIPT = """
import numpy as np
import streamlit as st
from pages.frame.server.html_page import STYLE
from pages.widgets.canvas import draw, mosaic_picture
from viz.canvas.lines import lines
from viz.canvas.mosaic import Group, mosaic

weights = np.load(f"{{FOLDER}}/{st.query_params['n']}.npy")
tokens = [NASTY, *(f"tok{i}" for i in range(1, weights.shape[-1]))]
causal = np.tri(len(tokens), dtype=bool)
chosen = st.session_state.setdefault("chosen", ("decoder_self", 1, 2))

st.html(STYLE)

def choose(*place):
    st.session_state["chosen"] = place

st.text(f"Chosen: {chosen}")
kinds = {"encoder_self": None, "decoder_self": causal}
groups = [Group(kind, kind, weights, tokens, tokens, allowed) for kind, allowed in kinds.items()]
mosaic_picture(mosaic(groups, chosen), "mosaic", choose)
draw(lines(weights[0], tokens, tokens, allowed=causal, shown=[0, 1]), "lines")
st.text("The picture is the model")
"""


def weights_of(size: int) -> Array:
    """(layers, heads, query, key), rows that sum to 1, more of it on some keys."""
    return np.random.default_rng(size).dirichlet(np.full(size, 0.2), (LAYERS, HEADS, size)).astype(np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("heads")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[str]:
    """A script with nothing but the two components."""
    for size in (1, 5, 128):
        np.save(folder / f"{size}.npy", weights_of(size))
    script = folder / "script.py"
    script.write_text(SCRIPT.replace("{{FOLDER}}", str(folder)).replace("NASTY", repr(NASTY)))
    with serve(folder, folder / "log.txt", script) as address:
        yield address


def layer_of(visitor: Visitor, name: str, above: int) -> "Locator":
    """The canvas with the picture (0), or what lies above it and takes clicks and keys (1)."""
    return visitor.page.locator(f".{name} .layers > *").nth(above)


Layout = tuple[list[float], list[float]]


def layout_of(visitor: Visitor) -> Layout:
    """Of the mosaic: left, steps across and down, width and height of a head; and the top of each group."""
    marks = layer_of(visitor, "mosaic", 1)
    return tuple([float(part) for part in marks.get_attribute(f"data-{name}").split()] for name in ("tiles", "tops"))


def cell_place(layout: Layout, group: int, layer: int, head: int, fraction: tuple[float, float]) -> dict[str, float]:
    """Where in the mosaic a head has the place that is this far right and down in it."""
    (left, step_x, step_y, width, height), tops = layout
    top = tops[group]
    return {"x": left + head * step_x + fraction[0] * width, "y": top + layer * step_y + fraction[1] * height}


def tile_of(layout: Layout, group: int, layer: int, head: int) -> list[float]:
    """Left, top, width and height of a head in the mosaic."""
    corner = cell_place(layout, group, layer, head, (0, 0))
    return [corner["x"], corner["y"], *layout[0][3:]]


def outlined(visitor: Visitor, name: str) -> list[float]:
    """Where in the mosaic the outline of a head is, and that its line can be seen."""
    boxes = [layer_of(visitor, "mosaic", 1), visitor.page.locator(f".mosaic .outline.{name}")]
    whole, box = (each.bounding_box() for each in boxes)
    style = boxes[1].evaluate("node => getComputedStyle(node).outline")
    assert re.match(r"rgb\(.* [1-9]\d*px", style)
    return [box["x"] - whole["x"], box["y"] - whole["y"], box["width"], box["height"]]


def pixels(canvas: "Locator", places: list[dict[str, float]]) -> list[list[int]]:
    return canvas.evaluate(
        """(canvas, places) => places.map(({x, y}) =>
            [...canvas.getContext('2d').getImageData(Math.floor(x), Math.floor(y), 1, 1).data])""",
        places,
    )


def pixel(canvas: "Locator", place: dict[str, float]) -> list[int]:
    return pixels(canvas, [place])[0]


def viridis(weight: float) -> list[float]:
    """Red, green, blue and opaque, of the one of 256 colours that is nearest to the weight."""
    anchors = np.array(colour_scales()["viridis"])
    place = int(float(weight) * 255 + 0.5) / 255 * (len(anchors) - 1)
    return [*(np.interp(place, range(len(anchors)), part) for part in anchors.T), 255]


def tip(visitor: Visitor, name: str) -> list[str]:
    return visitor.page.locator(f".{name} .tip").inner_text().splitlines()


def tip_weight(visitor: Visitor) -> float:
    """The weight in the tooltip of the mosaic; 0 if four decimals cannot hold it."""
    text = tip(visitor, "mosaic")[0].removeprefix("attention weight ")
    return 0 if text.startswith("under") else float(text)


def wait_for_choice(visitor: Visitor, *place: object) -> None:
    visitor.page.get_by_text(f"Chosen: {place}").wait_for()
    visitor.settle()


def test_each_cell_has_the_colour_of_its_weight_and_says_it_as_text_and_masked_ones_have_none(
    server: str, visitor: Visitor
) -> None:
    visitor.visit(f"{server}/?n=5")
    weights, picture, layout = weights_of(5), layer_of(visitor, "mosaic", 0), layout_of(visitor)
    for group in (0, 1):
        cells = list(np.ndindex(LAYERS, HEADS, 5, 5))
        places = [cell_place(layout, group, *cell[:2], ((cell[3] + 0.5) / 5, (cell[2] + 0.5) / 5)) for cell in cells]
        for cell, found in zip(cells, pixels(picture, places), strict=True):
            if group and cell[3] > cell[2]:
                assert found[3] < 255
            else:
                assert found == pytest.approx(viridis(weights[cell]), abs=1)
    marks = layer_of(visitor, "mosaic", 1)
    marks.hover(position=cell_place(layout, 0, 1, 2, (0.1, 0.7)))
    assert tip_weight(visitor) == pytest.approx(weights[1, 2, 3, 0], abs=6e-5)
    assert tip(visitor, "mosaic")[1:] == ["encoder_self, layer 1, head 2", "query 3: tok3", f"key 0: {NASTY}"]
    marks.hover(position=cell_place(layout, 1, 0, 0, (0.9, 0.1)))
    assert tip(visitor, "mosaic")[0] == "masked: may not attend"
    assert visitor.page.locator(".tip img, .spoken img").count() == 0


def test_of_many_tokens_each_pixel_shows_the_largest_of_its_cells_and_keys_isolate_one(
    server: str, visitor: Visitor
) -> None:
    visitor.visit(f"{server}/?n=128")
    weights, picture = weights_of(128), layer_of(visitor, "mosaic", 0)
    layout = layout_of(visitor)
    *_, width, height = layout[0]
    assert height < 128
    for x, y in ((3, 5), (40, 60), (17, 99), (int(width) - 1, int(height) - 1)):
        rows = slice(int(y * 128 // height), max(int((y + 1) * 128 // height), int(y * 128 // height) + 1))
        keys = slice(int(x * 128 // width), max(int((x + 1) * 128 // width), int(x * 128 // width) + 1))
        largest = weights[1, 3, rows, keys].max()
        place = cell_place(layout, 0, 1, 3, ((x + 0.5) / width, (y + 0.5) / height))
        assert pixel(picture, place) == pytest.approx(viridis(largest), abs=1)
        layer_of(visitor, "mosaic", 1).hover(position=place)
        assert tip_weight(visitor) == pytest.approx(largest, abs=6e-5)
    assert visitor.page.get_by_text("a pixel shows the largest of its cells").is_visible()
    check_isolation(visitor, weights)


def test_a_head_is_chosen_by_click_in_the_light_and_by_key_in_the_dark(server: str, visitor: Visitor) -> None:
    visitor.visit(f"{server}/?n=5")
    marks, layout = layer_of(visitor, "mosaic", 1), layout_of(visitor)
    assert outlined(visitor, "chosen") == pytest.approx(tile_of(layout, 1, 1, 2), abs=0.5)
    marks.click(position=cell_place(layout, 0, 1, 3, (0.5, 0.5)))
    wait_for_choice(visitor, "encoder_self", 1, 3)
    assert outlined(visitor, "chosen") == pytest.approx(tile_of(layout, 0, 1, 3), abs=0.5)
    for key in ("ArrowDown", "ArrowLeft"):
        marks.press(key)
    visitor.change_scheme("dark")
    assert outlined(visitor, "focused") == pytest.approx(tile_of(layout, 1, 0, 2), abs=0.5)
    for key in ("ArrowLeft", "Enter"):
        marks.press(key)
    wait_for_choice(visitor, "decoder_self", 0, 1)
    assert outlined(visitor, "chosen") == pytest.approx(tile_of(layout, 1, 0, 1), abs=0.5)
    assert visitor.page.locator(".mosaic .spoken").inner_text().startswith("decoder_self, layer 0, head 1")
    marks.press("ArrowRight")
    said = visitor.page.locator(".mosaic .spoken").inner_text()
    largest = np.where(np.tri(5, dtype=bool), weights_of(5)[0, 2], 0).max()
    assert float(re.search(r"largest ([\d.]+), of query", said)[1]) == pytest.approx(largest, rel=0.01)
    marks.press("ArrowLeft")
    for key in ("ArrowUp", "ArrowUp", "ArrowUp", "ArrowLeft", "ArrowLeft", "Enter"):
        marks.press(key)
    wait_for_choice(visitor, "encoder_self", 0, 0)


def rows_of(visitor: Visitor) -> tuple[float, float, float]:
    """Where queries end, where keys start, and how tall a row of the lines is."""
    left, right, step = map(float, layer_of(visitor, "lines", 1).get_attribute("data-rows").split())
    return left, right, step


def test_a_kept_token_tells_every_exact_weight_and_heads_are_turned_on_and_off_without_asking_python(
    server: str, visitor: Visitor
) -> None:
    visitor.visit(f"{server}/?n=5")
    weights, top = weights_of(5), layer_of(visitor, "lines", 1)
    left, right, step = rows_of(visitor)
    top.hover(position={"x": left - 20, "y": 0.5 * step})
    assert tip(visitor, "lines") == [f"query 0 {NASTY}"]
    top.click(position={"x": left - 20, "y": 3.5 * step})
    for key in range(5):
        top.hover(position={"x": right + 20, "y": (key + 0.5) * step})
        said = tip(visitor, "lines")
        assert said[0] == "query 3 tok3"
        values = [re.fullmatch(rf"head {head}: (.*)", line)[1] for head, line in enumerate(said[2:])]
        if key > 3:
            assert values == ["masked", "masked"]
        else:
            assert [np.float32(read_number(value)) for value in values] == list(weights[0, :2, 3, key])
    top.press("Escape")
    check_chips(visitor)


def check_chips(visitor: Visitor) -> None:
    picture = layer_of(visitor, "lines", 0)
    inked = "c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.reduce((n, v) => n + (v > 0), 0)"
    chip = visitor.page.get_by_role("button", name="head 1")
    states = [picture.evaluate(inked)]
    for button in (
        chip,
        chip,
        visitor.page.get_by_role("button", name="None"),
        visitor.page.get_by_text("All", exact=True),
    ):
        button.click()
        states.append(picture.evaluate(inked))
    both, one, again, none, every = states
    assert none == 0 < one < both == again < every
    assert chip.get_attribute("aria-pressed") == "true"
    visitor.page.get_by_role("button", name="head 2").dblclick()
    assert visitor.page.locator(".chip[aria-pressed=true]").all_inner_texts() == ["head 2"]


def check_isolation(visitor: Visitor, weights: Array) -> None:
    """Keys choose the token whose lines are drawn alone, and scroll to it."""
    top, said = layer_of(visitor, "lines", 1), visitor.page.locator(".lines .spoken")
    for _ in range(3):
        top.press("ArrowDown")
    head, key = 1, int(weights[0, 1, 2, :3].argmax())
    name = NASTY if key == 0 else f"tok{key}"
    expected = f"head {head}: most, {weights[0, head, 2, key]:.3f}, with key {key} {name}"
    assert expected in said.inner_text()
    top.press("ArrowRight")
    assert said.inner_text().startswith("key 2 tok2")
    for _ in range(60):
        top.press("ArrowDown")
    assert visitor.page.locator(".lines .box").evaluate("box => box.scrollTop") > 0
    top.press("Escape")
    assert said.inner_text() == "All lines"


def test_one_token_and_a_narrow_window_are_drawn_too(server: str, visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 390, "height": 800})
    visitor.visit(f"{server}/?n=1")
    layout = layout_of(visitor)
    assert pixel(layer_of(visitor, "mosaic", 0), cell_place(layout, 0, 1, 3, (0.5, 0.5))) == viridis(1)
    assert visitor.page.evaluate("document.documentElement.scrollWidth") <= 390
