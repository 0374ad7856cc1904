"""Efficient attention, tab "Patterns": maps, shares, counts and curves are those of runs with the pattern."""

from collections.abc import Callable

import numpy as np
import pytest

from model.analysis.sparse_patterns import SizeSweep, measure_kept, pattern_sizes
from model.interventions import PatternMask
from tests.pages.figures import figure, numbers, words

pytest.importorskip("streamlit")

from pages.parts.sparse_patterns import sizes_in_words

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
    maps = [numbers(drawn["z"]) for drawn in figure(app, "pattern-maps")["data"] if "coloraxis" in drawn]
    expected = (
        np.where(before.mask[2], before.pattern[2], np.nan),
        np.where(after.mask[2], before.pattern[2], np.nan),
        np.where(after.mask[2], after.pattern[2], np.nan),
    )
    for drawn, weights in zip(maps, expected, strict=True):
        np.testing.assert_allclose(drawn, weights, rtol=1e-5)
    kept = measure_kept(trace, kind, pattern)
    points, means, chosen = figure(app, "pattern-share")["data"]
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
    assert not [chart for chart in app.get("plotly_chart") if chart.proto.id.endswith("pattern-sizes")]
    app.button(key="pattern_sweep").click().run()
    assert not app.exception
    trace = translator.trace(SOURCE, TARGET)
    sizes = pattern_sizes(trace)
    drawn = figure(app, "pattern-sizes")
    line, *groups = drawn["data"]
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


def test_the_words_name_the_smallest_size_that_passes() -> None:
    said = sizes_in_words(sweep([-9, -2.05, -3, -2], [1, 1, 1, 1]), "window", writes=True)
    assert "**2 is the smallest window** at which the output stays the same" in said
    assert "−0.050 nats, with 7 of 12 visible cells" in said
    assert "Some larger sizes fail again: 4." in said
    said = sizes_in_words(sweep([-9, -2.05, -3, -2], [0, 0, 0, 1]), "block", writes=False)
    assert "**8 is the smallest block** at which log p is within" in said
    assert "no cell of this run is left out" in said
    assert "**In no size" in sizes_in_words(sweep([-9, -8, -7, -6], [1, 1, 1, 1]), "window", writes=True)
