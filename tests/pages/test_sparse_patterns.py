"""Efficient attention, tab "Patterns": maps, shares, counts and curves are those of runs with the pattern."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from model.analysis.mechanisms.sparse_patterns import SizeSweep, measure_kept, pattern_sizes
from model.interventions import PatternMask
from tests.pages.figures import figure, numbers, words

pytest.importorskip("streamlit")

from pages.views.beyond.efficient_attention import BLOCK, STRIDED, WINDOW, smallest_size

PAGE = "pages/efficient_attention.py"
SOURCE, TARGET = "A dog runs and a cat sat.", "Ein Hund rennt."
QUERY = {"efficient": "Patterns", "source": SOURCE, "target": "Typed", "typed": TARGET, "layer": "1", "head": "2"}
KINDS = {"encoder_self": "Encoder self-attention", "decoder_self": "Decoder self-attention"}
CASES = {
    "Sliding window": PatternMask(2),
    "Strided": PatternMask(2, 2),
    "Global + window": PatternMask(2, global_tokens=(0,)),
    "Blocks": PatternMask(block=2),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CASES)
def test_the_tab_draws_runs_with_the_pattern(kind: str, name: str, open_app: Callable, translator) -> None:
    app = open_app(PAGE, **QUERY, kind=KINDS[kind], pattern=name, pattern_size="2")
    assert not app.exception
    pattern, trace = CASES[name], translator.trace(SOURCE, TARGET)
    changed = translator.trace(SOURCE, TARGET, interventions=(pattern,))
    before, after = (each.attention(kind, 1) for each in (trace, changed))
    maps = [numbers(drawn["z"]) for drawn in figure(app, "efficient_attention-maps")["data"] if "coloraxis" in drawn]
    expected = (
        np.where(before.mask[2], before.pattern[2], np.nan),
        np.where(after.mask[2], before.pattern[2], np.nan),
        np.where(after.mask[2], after.pattern[2], np.nan),
    )
    for drawn, weights in zip(maps, expected, strict=True):
        np.testing.assert_allclose(drawn, weights, rtol=1e-5)
    kept = measure_kept(trace, kind, pattern)
    points, means, chosen = figure(app, "efficient_attention-share")["data"]
    np.testing.assert_allclose(numbers(points["y"]), kept.share.ravel())
    np.testing.assert_allclose(numbers(means["y"]), kept.share.mean(axis=1))
    np.testing.assert_allclose(numbers(chosen["y"]), [kept.share[1, 2]])
    table = app.dataframe[0].value
    rows = [name for name in ("all", "visible", "kept") if name != "visible" or kind == "decoder_self"]
    assert table["cells"].tolist() == [kept.cells[row] for row in rows]
    assert table["multiply-adds"].tolist() == [kept.multiply_adds[row] for row in rows]
    said = words(app)
    assert f"{after.mask[2].sum()} of {before.mask[2].sum()} visible cells are kept" in said
    assert f"{changed.log_probability:.3f}".replace("-", "−") in said


@pytest.mark.usefixtures("fresh_caches")
def test_every_size_is_run_when_the_button_is_pressed(open_app: Callable, translator) -> None:
    app = open_app(PAGE, **QUERY, kind=KINDS["encoder_self"])
    assert not [chart for chart in app.get("plotly_chart") if chart.proto.id.endswith("efficient_attention-sizes")]
    app.button(key="pattern_sweep").click().run()
    assert not app.exception
    trace = translator.trace(SOURCE, TARGET)
    sizes = pattern_sizes(trace)
    drawn = figure(app, "efficient_attention-sizes")
    line, *groups = drawn["data"][:3]
    assert numbers(line["x"]).tolist() == sizes
    scores = [translator.trace(SOURCE, TARGET, interventions=(PatternMask(s),)).log_probability for s in sizes]
    np.testing.assert_allclose(numbers(line["y"]), scores, rtol=1e-6)
    own = translator.translate([SOURCE])
    same = [size for size in sizes if translator.translate([SOURCE], interventions=(PatternMask(size),)) == own]
    assert numbers(groups[0]["x"]).tolist() == same
    assert sorted([*same, *numbers(groups[1]["x"]).tolist()]) == sizes
    near = [s for s, score in zip(sizes, scores, strict=True) if s in same and abs(score - trace.log_probability) < 0.1]
    assert f"**{near[0]} is the smallest window**" in words(app)


def test_cross_attention_has_no_pattern_and_forged_values_no_traceback(open_app: Callable) -> None:
    app = open_app(PAGE, **QUERY, kind="Cross-attention")
    assert not app.exception
    assert "Cross-attention joins two texts" in words(app)
    forged = {"pattern": "x", "pattern_size": "9999", "pattern_global": "zz"}
    app = open_app(PAGE, **QUERY, kind=KINDS["encoder_self"], **forged)
    assert not app.exception
    app = open_app(PAGE, **QUERY, kind=KINDS["encoder_self"], **forged | {"pattern": "Global + window"})
    assert not app.exception


def sweep(scores: list[float], same: list[int]) -> SizeSweep:
    return SizeSweep(np.array([1, 2, 4, 8]), np.array(scores), np.array(same), np.array([4, 7, 9, 12]), -2.0, 12)


def test_the_smallest_size_is_the_first_that_passes_and_of_strides_the_one_with_the_fewest_cells() -> None:
    facts = smallest_size(sweep([-9, -2.05, -3, -2], [1, 1, 1, 1]), WINDOW)
    assert (facts["smallest"], facts["what"], facts["cells"], facts["failing"]) == (2, "window", 7, [4])
    assert facts["cost"] == pytest.approx(-0.05)
    assert not facts["whole"]
    facts = smallest_size(sweep([-9, -2.05, -3, -2], [0, 0, 0, 1]), BLOCK)
    assert (facts["smallest"], facts["what"], facts["failing"], facts["whole"]) == (8, "block", [], True)
    falling = replace(sweep([-9, -2.05, -3, -2], [1, 1, 1, 1]), cells=np.array([12, 9, 7, 4]))
    facts = smallest_size(falling, STRIDED)
    assert (facts["smallest"], facts["failing"], facts["whole"]) == (8, [], False)
    assert smallest_size(sweep([-9, -8, -7, -6], [1, 1, 1, 1]), WINDOW) == {"smallest": None}
