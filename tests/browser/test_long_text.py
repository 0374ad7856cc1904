"""A long text in Chromium: zooming asks for detail, a click for the exact weights of a query."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest

from model.analysis.long_run import long_run, weights
from model.checkpoints.store import load_checkpoint
from tests.browser.conftest import Visitor, serve
from tests.pages.test_long_text import TEXT, folder  # noqa: F401 - a fixture

PICTURE = "div.long_map"


@pytest.fixture(scope="module")
def long_server(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:  # noqa: F811
    with serve(folder, tmp_path_factory.mktemp("long-server") / "log.txt") as address:
        yield address


def test_a_long_text_is_zoomed_into_and_a_query_chosen(
    long_server: str,
    visitor: Visitor,
    folder: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ATTENTION_EXPLORER_CHECKPOINTS", str(folder))
    run = long_run(load_checkpoint("lm", "cpu"), TEXT)
    query = {"checkpoint": "lm", "source": TEXT, "efficient": "Long text", "layer": "1", "head": "2"}
    visitor.visit(f"{long_server}/efficient_attention?{urlencode(query)}")
    picture = visitor.page.locator(PICTURE)
    marks = picture.locator("canvas.marks")
    marks.scroll_into_view_if_needed()
    assert picture.get_attribute("data-looks") == "1"
    plane = picture.locator(".layers canvas").first
    before = plane.evaluate("canvas => canvas.toDataURL()")
    for _ in range(3):
        picture.get_by_role("button", name="Zoom in").click()
    assert plane.evaluate("canvas => canvas.toDataURL()") != before
    visitor.page.wait_for_function("node => node.dataset.looks === '2'", arg=picture.element_handle(), timeout=20_000)
    marks.focus()
    visitor.page.keyboard.press("Enter")
    visitor.page.wait_for_function("node => node.dataset.row", arg=picture.element_handle(), timeout=20_000)
    row = int(picture.get_attribute("data-row"))
    assert abs(row - len(run) // 2) <= 1
    visitor.settle()
    shown = picture.evaluate("node => [...node.exact]")
    expected = weights(run, ("decoder_self", 1), slice(2, 3), (row, row + 1))[0, 0]
    np.testing.assert_allclose(shown, expected, rtol=1e-3, atol=1e-6)
    visitor.page.keyboard.press("0")
    assert plane.evaluate("canvas => canvas.toDataURL()") != before  # the detail stays over the whole
