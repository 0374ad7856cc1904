"""Pictures and numbers as files: saved by the browser, and opened again without a network."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING
from urllib.parse import urlencode
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from model.checkpoints.translator import Translator
from model.run import Run
from pages.views.attention import masks
from tests.browser.conftest import PATIENCE, Visitor
from viz.notebook import heads, lines, steps

if TYPE_CHECKING:
    from playwright.sync_api import Browser, FrameLocator, Page, Request

SOURCE = "A dog & a <b>cat</b> run."
QUERY = {"source": SOURCE, "kind": "Cross", "layer": "1", "head": "2"}
WEIGHTS = """(data) => {
  const plot = document.querySelector(".js-plotly-plot");
  const map = plot.calcdata.map(([first]) => first.trace).filter(({ type }) => type === "heatmap").at(-1);
  return Array.from(map._z || map.z, (row) => Array.from(row));
}"""


def pattern_of(translator: Translator) -> np.ndarray:
    """The attention weights that the pages are asked for."""
    return translator.trace(SOURCE).attention("cross", 1).pattern[2]


def visit(server: str, visitor: Visitor, page: str, **query: str) -> None:
    visitor.visit(f"{server}/{page}?{urlencode(QUERY | query)}")
    visitor.page.get_by_text("Export", exact=True).last.click()


def saved(page: "Page", button: str, folder: Path) -> Path:
    with page.expect_download() as download:
        page.get_by_role("button", name=button).first.click()
    file = folder / download.value.suggested_filename
    download.value.save_as(file)
    return file


def words_of(file: Path) -> str:
    """All text of an SVG file, which must be well-formed; its style is none."""
    nodes = ElementTree.parse(file).getroot().iter()
    return " ".join(node.text or "" for node in nodes if not node.tag.endswith("style"))


@pytest.mark.parametrize(
    ("page", "pictures"),
    [
        (
            "heads_and_layers",
            {"All heads": (".mosaic canvas", "colours from 0 to 1"), "Lines of": (".lines canvas", "queries")},
        ),
        ("temperature", {"The head": (".temperature canvas.cells", "colours from 0 to 1")}),
        (
            "attention_step_by_step",
            {"Step 1": (".matrices canvas", "colours from"), "The arithmetic": (".arithmetic figure", "Colours:")},
        ),
        ("decoding", {"Beam search": (".beam_tree .node", "step 0")}),
    ],
)
def test_a_picture_that_the_browser_draws_is_saved_with_its_labels_and_with_what_it_is_of(
    page: str,
    pictures: dict[str, tuple[str, str]],
    server: str,
    visitor: Visitor,
    browser: "Browser",
    tmp_path: Path,
    translator: Translator,
) -> None:
    """A page of a component is opened; a small window shows all of the export box."""
    visit(server, visitor, page, **({"part": "Beam"} if page == "decoding" else {}))
    for picture, (drawn, shown) in pictures.items():
        visitor.page.locator(drawn).first.wait_for(state="attached")
        choose(visitor, picture)
        png, svg = (saved(visitor.page, f"Save as {kind}: {picture}", tmp_path) for kind in ("PNG", "SVG"))
        for file in (png, svg):
            assert re.search(r"-en-de-L1H2\.(png|svg)$", file.name)
        assert len(Image.open(png).convert("RGB").getcolors(2**24)) > 20, "colours"
        words = words_of(svg)
        assert shown in words
        assert "…" not in words, "nothing is shortened"
        assert "textLength" not in svg.read_text()
        assert "@font-face" in svg.read_text(), "the page's font comes along"
        assert re.search("Checkpoint en-de, SHA-256 [0-9a-f]{64}", words)
        assert SOURCE in words
    cameras = visitor.page.locator('.modebar-btn[data-title^="Download plot"]')
    assert not cameras.filter(visible=True).count(), "Plotly's own picture cuts its labels"
    if page == "temperature":
        check_page_of_a_component(visitor, browser, tmp_path, translator)
        check_small_window(visitor)


def choose(visitor: Visitor, picture: str) -> None:
    """Choose what is saved."""
    what = visitor.page.locator("[class*=st-key-paper-][class*=-what]")
    if picture not in what.inner_text() + what.locator("input").input_value():
        with visitor.rerun():
            what.locator("input").fill(picture)
            what.locator("input").press("Enter")


def test_a_figure_is_saved_for_a_paper_and_its_page_opens_without_a_network(
    server: str, visitor: Visitor, browser: "Browser", tmp_path: Path, translator: Translator
) -> None:
    visit(server, visitor, "masks")
    file = saved(visitor.page, "Save masks-maps-en-de-L1H2.pdf", tmp_path)
    assert file.name == "masks-maps-en-de-L1H2.pdf"
    assert file.read_bytes().startswith(b"%PDF")
    with visitor.rerun():
        visitor.page.get_by_role("radio", name="SVG").click()
    with visitor.rerun():
        visitor.page.get_by_role("radio", name="1 column").click()
    root = ElementTree.parse(saved(visitor.page, "Save masks-maps-en-de-L1H2.svg", tmp_path)).getroot()
    assert root.get("width") == "234pt"
    check_page_of_a_plotly_figure(visitor, browser, tmp_path, translator)


def check_page_of_a_plotly_figure(visitor: Visitor, browser: "Browser", tmp_path: Path, translator: Translator) -> None:
    with opened_offline(browser, saved(visitor.page, "HTML:", tmp_path)) as page:
        weights = np.array(page.evaluate(WEIGHTS), dtype=float)
        np.testing.assert_allclose(weights, pattern_of(translator), atol=1e-5)
        assert "layer=1" in page.locator("dl").inner_text()


def check_page_of_a_component(visitor: Visitor, browser: "Browser", tmp_path: Path, translator: Translator) -> None:
    """It works there, too."""
    pattern = pattern_of(translator)
    read = "(root) => Array.from(root.weights)"
    with opened_offline(browser, saved(visitor.page, "HTML:", tmp_path)) as page:
        weights = page.locator(".temperature").evaluate(read)
        np.testing.assert_allclose(np.reshape(weights, pattern.shape), pattern, atol=1e-5)
        page.get_by_role("slider").press("ArrowRight")
        assert "redrawn" in page.locator(".badge").inner_text()
        assert not np.allclose(page.locator(".temperature").evaluate(read), weights)


def test_outputs_in_an_exported_notebook_show_the_run_without_a_network(
    browser: "Browser", tmp_path: Path, translator: Translator
) -> None:
    trace = translator.trace(SOURCE)
    pictures = heads(trace), lines(trace, "cross", 1, heads=[2]), steps(trace, "cross", 1, 2)
    outputs = (*pictures, masks.orders(Run.of(translator, trace)))
    style = "<style>button, canvas { display: none !important }</style>"  # of the notebook: it must not reach a picture
    cells = "".join(f'<div id="picture-{n}">{output._repr_html_()}</div>' for n, output in enumerate(outputs))
    (tmp_path / "notebook.html").write_text(f"<!DOCTYPE html><meta charset=utf-8>{style}{cells}", encoding="utf-8")
    with opened_offline(browser, tmp_path / "notebook.html") as page:
        mosaic, between, in_steps = (page.frame_locator("iframe").nth(n) for n in range(3))
        assert number_read_out(mosaic, ".mosaic", "ArrowDown", r"largest ([0-9.]+)") == pytest.approx(
            trace.attention("encoder_self", 1).pattern[0].max(), abs=1e-4
        )
        largest = trace.attention("cross", 1).pattern[2, 0].max()
        assert number_read_out(between, ".lines", "ArrowDown", r"most, ([0-9.]+)") == pytest.approx(largest, abs=1e-3)
        in_steps.get_by_text("5. Softmax").click()
        exact = number_read_out(in_steps, "details[open] .matrices", "Home", r", ([0-9.]+), query 0")
        assert exact == pytest.approx(trace.attention("cross", 1).pattern[2, 0, 0])
        page.frame_locator("iframe").nth(3).locator(".js-plotly-plot .main-svg").first.wait_for()
        for frame in page.frames[1:]:
            frame.wait_for_function("frameElement.clientHeight === document.documentElement.scrollHeight")


def test_a_cell_takes_plotly_from_another_output_or_says_what_to_do(
    browser: "Browser", tmp_path: Path, translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = SimpleNamespace()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    outputs = []
    for cell in "ab":
        shell.parent_header = {"metadata": {"cellId": cell}}
        outputs.append(masks.orders(Run.of(translator, translator.trace(SOURCE)))._repr_html_())
    assert len(outputs[1]) < len(outputs[0]) / 3
    # The one that has it may be below the others.
    (tmp_path / "both.html").write_text(
        f"<!DOCTYPE html><div id=picture-0>{''.join(reversed(outputs))}</div>", encoding="utf-8"
    )
    with opened_offline(browser, tmp_path / "both.html") as page:
        for n in range(2):
            page.frame_locator("iframe").nth(n).locator(".js-plotly-plot .main-svg").first.wait_for()
    (tmp_path / "one.html").write_text(f"<!DOCTYPE html><div id=picture-0>{outputs[1]}</div>", encoding="utf-8")
    with opened_offline(browser, tmp_path / "one.html") as page:
        page.frame_locator("iframe").get_by_text("Restart the kernel").first.wait_for()


def number_read_out(frame: "FrameLocator", picture: str, key: str, pattern: str) -> float:
    """The number that a screen reader hears after the key is pressed in the last part of a picture."""
    root = frame.locator(picture)
    root.locator("[role=application]").last.press(key)
    found = re.search(pattern, root.locator(".spoken").inner_text())
    assert found, root.locator(".spoken").inner_text()
    return float(found[1])


def check_small_window(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 390, "height": 800})
    visitor.page.wait_for_function("document.querySelector('[data-testid=stMain]').scrollWidth <= 390")
    visitor.settle()
    for name in ("HTML:", "NPZ:", "CSV:"):
        box = visitor.page.get_by_role("button", name=name).first.bounding_box()
        assert box is not None, name
        assert 0 <= box["x"] <= box["x"] + box["width"] <= 390, name


@contextmanager
def opened_offline(browser: "Browser", file: Path) -> Iterator["Page"]:
    """The file in a window without a network, which must not complain."""
    context = browser.new_context(offline=True)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: errors.extend([] if is_local(request) else [request.url]))
    try:
        page.goto(file.as_uri())
        page.wait_for_selector(".js-plotly-plot .main-svg, #picture-0", state="attached")
        yield page
        assert errors == []
    finally:
        context.close()


def is_local(request: "Request") -> bool:
    return request.url.startswith(("file:", "data:", "blob:"))
