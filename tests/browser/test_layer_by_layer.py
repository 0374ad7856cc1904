"""The page "Layer by layer" in Chromium: a click follows a token, links, tabs, short and long sentences."""

from urllib.parse import urlencode

import pytest

from model.analysis.stream.residual_stream import measure_stream
from model.checkpoints.translator import Translator
from tests.browser.conftest import Visitor, query

CHART = ".st-key-layer_by_layer-path .js-plotly-plot"
TABS = {
    "Inside one sub-layer": ["layer_by_layer-strips"],
    "Logit lens": [
        "layer_by_layer-lens",
        "layer_by_layer-probability",
        "layer_by_layer-rank",
        "layer_by_layer-lens-map",
    ],
    "Neurons": ["layer_by_layer-neurons"],
    "Similarity": ["layer_by_layer-similarity"],
}


def page(server: str, **query: str) -> str:
    return f"{server}/layer_by_layer?{urlencode(query)}"


def draws(visitor: Visitor, key: str) -> bool:
    """Whether the chart is there, with a size."""
    plot = visitor.page.locator(f".st-key-{key} .js-plotly-plot .main-svg").first
    plot.wait_for()
    box = plot.bounding_box()
    return box is not None and box["width"] > 200 and box["height"] > 100


def test_a_click_on_a_cell_chooses_its_token_and_step_and_every_tab_draws(
    server: str, visitor: Visitor, translator: Translator
) -> None:
    """From a link that the address keeps."""
    asked = {"source": "a dog", "target": "Typed", "typed": "Ein Hund.", "layers_step": "1 cross-attention"}
    visitor.visit(page(server, **asked))
    assert query(visitor) == asked
    assert draws(visitor, "layer_by_layer-path")
    trace = translator.trace(asked["source"], asked["typed"])
    cells = visitor.page.locator(f"{CHART} .nsewdrag[data-subplot=x3y3]")
    cells.scroll_into_view_if_needed()
    box = cells.bounding_box()
    at = {"x": 2.7 / 7 * box["width"], "y": 2.5 / len(trace.tgt_tokens) * box["height"]}
    cells.hover(position=at)
    hover = visitor.page.locator(f"{CHART} .hoverlayer .hovertext").text_content()
    expected = measure_stream(trace, "decoder")
    shown = float(hover.split("input ")[1].split("token")[0].replace("−", "-"))
    assert shown == pytest.approx(expected.to_start[2, 2], abs=1e-4)
    cells.click(position=at)
    visitor.page.wait_for_function("location.search.includes('layers_step=0+cross-attention')")
    visitor.settle()
    assert query(visitor)["layers_token"].startswith("2 ")
    lengths = visitor.page.locator(CHART).evaluate("plot => Array.from(plot._fullData[2].y)")
    assert lengths == pytest.approx(list(expected.norm[2]), rel=1e-4)
    for tab, keys in TABS.items():
        visitor.page.get_by_role("tab", name=tab).click()
        visitor.settle()
        assert all(draws(visitor, key) for key in keys)
