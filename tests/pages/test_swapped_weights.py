"""Other weights and zeroed values: its points and bars are what the model computes, and it waits to be asked."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest

from model.analysis.runs.swapped_weights import rank_correlation, swap_every_head, zero_values
from tests.pages.figures import figure, numbers

if TYPE_CHECKING:
    from model.checkpoints.translator import Translator

pytestmark = pytest.mark.usefixtures("fresh_caches")

PAGE, TAB, ZEROING = "pages/gradients.py", "Other weights, same output?", "Value zeroing"
EVERY = {"explain_which": "Every head of this kind"}
SOURCE, TEXT, CROSS = "a dog and a cat", "Ein Hund mit einer Katze.", "Cross-attention"


def charts(app) -> list[str]:
    return [
        chart.proto.id for chart in app.get("plotly_chart") if re.search("gradients-(swaps|zeroing)", chart.proto.id)
    ]


def test_the_points_are_the_heads_swapped_one_by_one(open_app: Callable, translator: "Translator") -> None:
    app = open_app(PAGE, source=SOURCE, target="Typed", typed=TEXT, kind=CROSS, layer="1", head="2", part=TAB, **EVERY)
    assert not app.exception
    assert not charts(app), "nothing runs unasked"
    app.button(key="explain_swap").click().run()
    *_, right = swap_every_head(translator, translator.trace(SOURCE, TEXT), "cross")
    for way, measure in (("uniform", "tv"), ("permuted", "jsd")):
        app.segmented_control(key="explain_way").set_value(way).run()
        app.segmented_control(key="explain_distance").set_value(measure).run()
        points = figure(app, "gradients-swaps")["data"][0]
        found = getattr(right, way)
        assert numbers(points["x"]) == pytest.approx(found[f"pattern_{measure}"].ravel(), abs=1e-5)
        assert numbers(points["y"]) == pytest.approx(found[f"output_{measure}"].ravel(), abs=1e-5)
        assert points["text"][4 + 2] == "1.2"


def test_one_head_is_swapped_for_uniform_weights_and_for_shuffled_ones(open_app: Callable, translator) -> None:
    app = open_app(PAGE, source=SOURCE, target="Typed", typed=TEXT, kind=CROSS, head="1", part=TAB)
    assert not app.exception
    *_, right = swap_every_head(translator, translator.trace(SOURCE, TEXT), "cross")
    table = next(frame.value for frame in app.dataframe if "swapped for" in frame.value)
    assert table.iloc[0, 1] == pytest.approx(right.uniform["pattern_tv"][0, 1], abs=1e-5)
    assert table.iloc[0, 2] == pytest.approx(right.uniform["output_tv"][0, 1], abs=1e-5)


def test_value_zeroing_stands_beside_the_weights(open_app: Callable, translator: "Translator") -> None:
    app = open_app(PAGE, source=SOURCE, target="Typed", typed=TEXT, kind=CROSS, head="3", part=ZEROING)
    assert not app.exception
    trace = translator.trace(SOURCE, TEXT)
    *_, right = zero_values(translator, trace, "cross", 0, 3)
    weights, shares = trace.attention("cross", 0).pattern[3].mean(axis=0), right.share.mean(axis=0)
    drawn = [numbers(bar["y"]) for bar in figure(app, "gradients-zeroing")["data"]]
    assert np.array_equal(drawn[0], weights)
    assert drawn[1] == pytest.approx(shares, abs=1e-4)
    assert any(f"**{rank_correlation(weights, shares):+.3f}**".replace("-", "−") in text.value for text in app.markdown)


@pytest.mark.parametrize("tab", [TAB, ZEROING])
def test_the_head_that_a_tab_shows_can_be_chosen_in_the_sidebar(tab: str, open_app: Callable) -> None:
    app = open_app(PAGE, source=SOURCE, target="Typed", typed=TEXT, part=tab)
    controls = [app.segmented_control(key="kind"), *(app.select_slider(key=key) for key in ("layer", "head"))]
    assert not any(control.disabled for control in controls)


@pytest.mark.parametrize("source", ["A", "A dog runs. " * 12])
def test_one_word_and_a_hundred_tokens(open_app: Callable, source: str) -> None:
    place = {"source": source, "target": "Greedy", "kind": "Decoder self-attention", "explain_way": "?"}
    for key, query, drawn in (
        ("explain_swap", {"part": TAB}, 0),
        ("explain_swap", {"part": TAB, **EVERY}, 1),
        ("explain_zero", {"part": ZEROING}, 1),
    ):
        app = open_app(PAGE, **place, **query)
        for button in (button for button in app.button if button.key == key):
            button.click().run(timeout=120)
        assert not app.exception
        assert len(charts(app)) == drawn
