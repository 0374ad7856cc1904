"""The page on why attention in Chromium: links, sliders, words, a measurement that somebody asks for."""

import re
from urllib.parse import urlencode

from model.background.table_1 import layer_costs
from model.checkpoints.translator import Translator
from tests.browser.conftest import Visitor, query

OPERATIONS, PATHS = ".st-key-why_attention-operations .js-plotly-plot", ".st-key-why_attention-paths .js-plotly-plot"
MARKS = "plot => [...plot._fullData.find(t => t.name === 'your sentence').y]"
STEPS = "plot => [3, 7, 11, 15].map(i => plot._fullData[i].x.length - 1)"


def page(server: str, **query: str) -> str:
    return f"{server}/why_attention?{urlencode(query)}"


def wait_for(visitor: Visitor, selector: str, script: str, expected: list) -> None:
    visitor.settle()
    visitor.page.wait_for_function(
        f"([selector, expected]) => {{ const plot = document.querySelector(selector); "
        f"return plot?._fullData && JSON.stringify(({script})(plot)) === JSON.stringify(expected); }}",
        arg=[selector, expected],
    )


def choose(visitor: Visitor, key: str, number: int) -> None:
    """The word at this position: what is typed leaves but a few options, all of which are drawn."""
    box = visitor.page.locator(f".st-key-{key} input")
    box.click()
    box.fill(f"{number} ")
    visitor.page.get_by_role("option").filter(has_text=re.compile(f"^{number} ")).click()


def marks(translator: Translator, source: str, k: int, r: int) -> list[int]:
    n = len(translator.trace(source, beam_size=1).src_tokens)
    return [cost.operations for cost in layer_costs(n, translator.model.config.d_model, k, r).values()]


def test_the_marks_are_table_1_at_this_sentence_whatever_the_sliders_say(
    server: str, visitor: Visitor, translator: Translator
) -> None:
    source = " ".join(["A dog runs."] * 13)
    visitor.visit(page(server, source=source, target="Greedy"))
    wait_for(visitor, OPERATIONS, MARKS, marks(translator, source, 3, 8))
    visitor.page.get_by_role("slider", name="Kernel width").press("End")
    visitor.page.get_by_role("slider", name="Neighbours").press("Home")
    wait_for(visitor, OPERATIONS, MARKS, marks(translator, source, 15, 2))
    assert {key: query(visitor)[key] for key in ("kernel", "neighbours")} == {"kernel": "15", "neighbours": "2"}
    visitor.page.get_by_role("tab", name="Path length").click()
    visitor.page.locator(PATHS).wait_for()
    visitor.settle()
    assert 0 < visitor.page.locator(f"{PATHS} .xtick, {PATHS} .x4tick").count() <= 30


def test_another_word_changes_the_paths_and_times_are_measured_when_somebody_asks(
    server: str, visitor: Visitor
) -> None:
    visitor.page.emulate_media(color_scheme="dark")
    visitor.visit(
        page(server, source="A dog runs. " * 3, target="Greedy", why="Path length", kernel="2", neighbours="4")
    )
    visitor.page.locator(PATHS).wait_for()
    choose(visitor, "path_to", 8)
    wait_for(visitor, PATHS, STEPS, [1, 8, 4, 4])
    choose(visitor, "path_from", 6)
    wait_for(visitor, PATHS, STEPS, [1, 2, 2, 1])
    visitor.page.get_by_role("tab", name="Measured").click()
    button = visitor.page.get_by_role("button", name="Measure on this machine")
    button.wait_for()
    assert visitor.page.locator(".st-key-why_attention-times").count() == 0
    button.click()
    plot = visitor.page.locator(".st-key-why_attention-times .js-plotly-plot")
    plot.wait_for()
    visitor.settle()
    lines = plot.evaluate("plot => plot._fullData.map(t => [t.name, [...t.y]])")
    assert [name for name, _ in lines] == ["self-attention", "LSTM"]
    assert all(time > 0 for _, times in lines for time in times)
    visitor.page.get_by_role("tab", name="Scoring functions").click()
    visitor.page.locator(".st-key-why_attention-scores .js-plotly-plot .main-svg").first.wait_for()
    visitor.settle()
