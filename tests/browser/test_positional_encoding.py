"""The page on positional encoding in Chromium: sliders, tabs, short and long sentences, links."""

from urllib.parse import urlencode

import pytest

from model.analysis.positions.word_order import reorder, run_both_orders
from model.checkpoints.translator import Translator
from tests.browser.conftest import Visitor, query

TABLE = ".st-key-positional_encoding-table .js-plotly-plot"
SHAPE = "plot => { const z = plot._fullData[0].z; return [z.length, z[0].length]; }"


def page(server: str, **query: str) -> str:
    return f"{server}/positional_encoding?{urlencode(query)}"


def wait_for_shape(visitor: Visitor, rows: int, columns: int) -> None:
    visitor.settle()
    visitor.page.wait_for_function(
        f"([selector, shape]) => String(({SHAPE})(document.querySelector(selector))) === String(shape)",
        arg=[TABLE, [rows, columns]],
    )


def draws(visitor: Visitor, key: str) -> bool:
    """Whether the chart is there, with a size."""
    plot = visitor.page.locator(f".st-key-{key} .js-plotly-plot .main-svg").first
    plot.wait_for()
    box = plot.bounding_box()
    return box is not None and box["width"] > 200 and box["height"] > 100


TABS = {
    "Your sentence": ["positional_encoding-sum"],
    "Wavelengths": ["positional_encoding-wavelengths", "positional_encoding-waves"],
    "Distance": ["positional_encoding-similarity", "positional_encoding-similarity-curve"],
    "Learned, RoPE, ALiBi": ["positional_encoding-rope", "positional_encoding-rope-offsets"],
    "Word order": ["positional_encoding-moved", "positional_encoding-order-weights"],
    "Rotation": ["positional_encoding-clocks", "positional_encoding-blocks"],
}


def test_the_table_is_the_models_own_at_every_end_of_its_sliders_and_every_tab_draws(
    server: str, visitor: Visitor, translator: Translator
) -> None:
    # Sines stand beside cosines: a map has half of the dimensions. At first there are those that change over 64 rows.
    asked = {"part": "The encoding", "positions": "100", "dimensions": "32", "side": "Target"}
    visitor.visit(page(server, **asked))
    wait_for_shape(visitor, 100, 16)
    visitor.visit(page(server, part="The encoding", dimensions="32"))
    wait_for_shape(visitor, 64, 16)
    row, pair = 20, 2
    for half, function in enumerate(("sin", "cos")):
        plot = visitor.page.locator(f"{TABLE} .nsewdrag").nth(half)
        plot.hover()
        box = plot.bounding_box()
        plot.hover(position={"x": (pair + 0.5) * box["width"] / 16, "y": (row + 0.5) * box["height"] / 64})
        column = 2 * pair + half
        place = f"position {row}, dimension {column} (pair {pair}){function}(pos / 10000"
        hover = visitor.page.locator(f"{TABLE} .hoverlayer .hovertext", has_text=place)
        shown = hover.text_content().split("position")[0].replace("−", "-")
        assert float(shown) == pytest.approx(float(translator.positional_encoding()[row, column]), rel=1e-6)
    positions, dimensions = (visitor.page.get_by_role("slider", name=name) for name in ("Positions", "Dimensions"))
    positions.press("End")
    wait_for_shape(visitor, 128, 16)
    dimensions.press("Home")
    wait_for_shape(visitor, 128, 1)
    positions.press("Home")
    wait_for_shape(visitor, 2, 1)
    assert query(visitor) == {"part": "The encoding", "positions": "2", "dimensions": "2"}
    for tab, keys in TABS.items():
        visitor.page.get_by_role("tab", name=tab).click()
        visitor.settle()
        assert all(draws(visitor, key) for key in keys)
    visitor.page.get_by_role("slider", name="Offset k").press("End")
    visitor.page.locator(".katex-mathml", has_text="M_{64}").first.wait_for(state="attached")
    visitor.settle()


def test_a_link_opens_an_order_and_the_bars_are_its_run(server: str, visitor: Visitor, translator: Translator) -> None:
    asked = {"source": "a dog and a cat", "target": "Greedy", "pe_order": "4 1 2 3 0"}
    visitor.visit(page(server, **asked))
    assert draws(visitor, "positional_encoding-moved")
    assert visitor.page.get_by_text("get the same translation").count() == 1
    trace = translator.trace("a dog and a cat", beam_size=1)
    run = run_both_orders(translator, trace, reorder(trace.src_tokens, (4, 1, 2, 3, 0)), (), ("encoder_self", 0))
    bars = visitor.page.locator(".st-key-positional_encoding-moved .js-plotly-plot").evaluate(
        "plot => Array.from(plot._fullData[0].y)"
    )
    assert bars == pytest.approx(list(run.moved), rel=1e-4, abs=1e-5)
    assert query(visitor) == asked
    visitor.page.get_by_role("button", name="Shuffle").click()
    visitor.settle()
    visitor.page.wait_for_function("!location.search.includes('pe_order') && location.search.includes('pe_seed=2')")
