"""Efficient attention: tiles, features, patterns and costs are those of the chosen head and model."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from model.analysis.mechanisms.flash import flash_attention
from model.analysis.mechanisms.linear_attention import linear_attention, sweep_features
from model.analysis.mechanisms.sparse_patterns import SizeSweep, measure_kept, pattern_sizes
from model.background import attention_costs as costs
from model.background.layer_size import layer_sizes
from model.background.stopwatch import fit_power, measure
from model.interventions import PatternMask, UniformAttention
from model.trace import KIND_TITLES as KINDS
from pages.compute.runs import compute
from pages.views.beyond import efficient_attention as views
from pages.views.beyond import timing
from pages.views.beyond.efficient_attention import BLOCK, STRIDED, WINDOW, smallest_size
from tests.pages.conftest import SOURCE
from tests.pages.figures import figure, lines, maps, numbers, words

PAGE = "pages/efficient_attention.py"
FAMILIES = "lm", "mlm", "GPT-2", "Gemma 2"


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_draws_its_tile_and_the_output_so_far(kind: str, run_at: Callable) -> None:
    run = run_at(kind, 1, 2)
    result, tiled = views.flash(run, tile=2, step=4), flash_attention(run.attention, 2, 2)
    (top, bottom), (left, right) = tiled.rows[3], tiled.columns[3]
    panels = {"S": "x", "K": "x2", "V": "x3", "Q": "x4", "m": "x5", "ℓ": "x6", "O": "x7"}
    drawn = {name: [one for one in figure(result, "tile")["data"] if one["xaxis"] == x] for name, x in panels.items()}
    tile = numbers(drawn["S"][0]["z"])
    assert np.isfinite(tile).sum() == run.attention.mask[2, top:bottom, left:right].sum()
    np.testing.assert_allclose(tile[top:bottom, left:right], tiled.scores[top:bottom, left:right], rtol=1e-5)
    q, k, v = (each[2] for each in (run.attention.q, run.attention.k, run.attention.v))
    for name, whole, inside in (
        ("Q", q, np.s_[top:bottom]),
        ("K", k.T, np.s_[:, left:right]),
        ("V", v.T, np.s_[:, left:right]),
    ):
        block, others = (numbers(one["z"]) for one in drawn[name])
        assert np.array_equal(block[inside], whole[inside]), f"{name} in fast memory"
        assert np.isfinite(block).sum() == whole[inside].size
        assert np.array_equal(np.where(np.isnan(block), others, block), whole)
    seen = np.where(np.isfinite(tiled.m[4]), tiled.m[4], np.nan)
    np.testing.assert_allclose(numbers(drawn["m"][0]["z"])[:, 0], seen, rtol=1e-6)
    np.testing.assert_allclose(numbers(drawn["ℓ"][0]["x"]), tiled.l[4])
    np.testing.assert_allclose(numbers(drawn["O"][0]["z"]), tiled.o[4], rtol=1e-4, atol=1e-6)
    assert result.shows["sums"]["ℓ after"].tolist() == tiled.l[4, top:bottom].tolist()
    facts = result.facts
    assert (facts["tile_bytes"], facts["read"], facts["skipped"]) == (
        tiled.tile_bytes,
        len(tiled.rows),
        len(tiled.skipped),
    )
    assert (facts["skipped"] > 0, facts["unexplained"]) == (kind == "decoder_self", False)


def test_weights_changed_after_q_and_k_are_no_rounding_and_no_error_that_features_remove(run_at: Callable) -> None:
    run = run_at("encoder_self", 0, 0, UniformAttention("encoder_self"))
    assert views.flash(run).facts["unexplained"]
    assert (views.linear(run).facts["limited"], views.linear(run_at()).facts["limited"]) == (True, False)


@pytest.mark.parametrize("where", [*KINDS, *FAMILIES])
def test_errors_and_maps_of_linear_attention_are_those_of_the_head(
    where: str, run_at: Callable, family_run: Callable
) -> None:
    run = replace(run_at(where, 1, 2) if where in KINDS else family_run(where), compute=compute)
    attention, result = run.attention, views.linear(run, features=32, draw=3)
    sweep, made = compute(sweep_features, attention, 2), linear_attention(attention, 2, 32, 3)
    for name, (low, median, high), errors in (
        ("weights", sweep.weights_band, made.weight_errors),
        ("z", sweep.z_band, made.z_errors),
    ):
        drawn = figure(result, name)["data"]
        for line, expected in zip(drawn, (high, low, median), strict=False):
            np.testing.assert_allclose(numbers(line["y"]), expected, rtol=1e-9)
            assert list(numbers(line["x"])) == sweep.features.tolist()
        np.testing.assert_allclose(numbers(drawn[3]["y"]), errors[0])
    mask = attention.mask[2]
    for drawn, weights in zip(maps(result, "maps"), (made.exact, made.random, made.elu), strict=True):
        np.testing.assert_allclose(drawn, np.where(mask, weights, np.nan), rtol=1e-5)
    assert result.facts["z_errors"] == (sweep.z_band[1, 0], sweep.z_band[1, -1])
    assert result.facts["enough"] == sweep.enough(0.1)
    assert result.facts["limited"] == (sweep.weights_limit > views.NO_ROUNDING) <= (attention.softcap is not None)
    (queries, keys), d_k, d_v = mask.shape, attention.d_k, attention.v.shape[-1]
    assert result.shows["work"]["multiply-adds"].tolist() == [
        queries * keys * (d_k + d_v),
        (queries + keys) * 32 * (d_v + 1 + d_k),
        (queries + keys) * d_k * (d_v + 1),
    ]


@pytest.mark.parametrize(
    ("where", "memory"),
    [
        *(("encoder_self", "memory"), ("decoder_self", "cache"), ("cross", "parameters")),
        *(("lm", "memory"), ("GPT-2", "cache"), ("Gemma 2", "parameters")),
    ],
)
def test_costs_are_counted_from_the_models_sizes(
    where: str, memory: str, run_at: Callable, family_run: Callable
) -> None:
    run = run_at(where, 1, 2) if where in KINDS else family_run(where)
    kind = run.kind
    assert views.cost_over_n(run, outcome=None).values["window"] == (run.attention.window or 256)
    result = views.cost_over_n(run, n=100_000, window=128, features=64, memory=memory, width=2, outcome=None)
    sizes, here = layer_sizes(run.trace, kind), len(run.attention.key_tokens)
    for key, name, factor in (("work", "multiply_adds", 1), ("memory", memory, 2)):
        drawn = figure(result, key)
        n = numbers(drawn["data"][0]["x"]).astype(int)
        assert {here, 100_000, 1_000_000} <= set(n)
        curves = costs.cost_over_n(run.trace, kind, n.tolist(), 128, 64)
        assert [line["name"] for line in drawn["data"]] == list(curves.methods)
        for line, expected in zip(drawn["data"], getattr(curves, name), strict=True):
            np.testing.assert_allclose(numbers(line["y"]), factor * expected)
        assert [shape["x0"] for shape in drawn["layout"]["shapes"]] == [here, 100_000]
    counted = costs.attention_costs(sizes, 100_000, 128, 64)
    table = result.shows["table"]
    assert table["attention"].tolist() == list(counted)
    assert table["multiply-adds"].tolist() == [f"{cost.multiply_adds:,}" for cost in counted.values()]
    assert table["together, bytes"].tolist() == [f"{2 * cost.memory:,}" for cost in counted.values()]
    facts = result.facts
    assert (facts["even"], facts["size"], facts["here"]) == (costs.even_length(sizes, 64), sizes[0], here)


@pytest.mark.usefixtures("fresh_caches")
def test_times_are_measured_when_the_button_is_pressed_and_drawn_with_their_fits(
    open_app: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, short = [], (4, 8, 16, 32)

    def measure_short(contenders, device, lengths):
        asked.append(tuple(lengths))
        return measure(contenders, device, short, rounds=3)

    monkeypatch.setattr(timing, "measure", measure_short)
    app = open_app(PAGE, source=SOURCE, efficient="Cost over n")
    assert not asked
    assert not [one for one in app.get("plotly_chart") if one.proto.id.endswith("efficient_attention-times")]
    app.button(key="cost-time").click().run()
    assert asked == [costs.MEASURED]
    drawn, table = figure(app, "efficient_attention-times")["data"], app.dataframe[1].value
    names = (costs.EAGER, costs.FUSED, costs.ELU)
    for name, points, line in zip(names, drawn[:3], drawn[3:], strict=True):
        times = numbers(points["y"])
        assert (points["name"], points["mode"]) == (name, "markers")
        assert list(numbers(points["x"])) == list(short)
        assert (times > 0).all()
        np.testing.assert_allclose(times, table[f"{name}, ms"])
        factor, power = fit_power(short, times)
        assert list(numbers(line["x"])) == list(short[-3:])
        np.testing.assert_allclose(numbers(line["y"]), factor * np.array(short[-3:]) ** power)
        assert f"**{power:.2f}** ({name})".replace("-", "−") in words(app)
    app.run()
    assert list(lines(app, "efficient_attention-times")[0]) == list(numbers(drawn[0]["y"]))


CASES = {
    "window": PatternMask(2),
    "strided": PatternMask(2, 2),
    "global": PatternMask(2, global_tokens=(0,)),
    "block": PatternMask(block=2),
}


@pytest.mark.parametrize(
    ("where", "name"),
    [
        (where, [*CASES][(number + shift) % len(CASES)])
        for number, where in enumerate(("encoder_self", "decoder_self", *FAMILIES))
        for shift in (0, 1)
    ],
)
def test_a_pattern_is_drawn_from_a_run_with_it(where: str, name: str, run_at: Callable, family_run: Callable) -> None:
    run, pattern = run_at(where, 1, 2) if where in KINDS else family_run(where), CASES[name]
    changed, kind = run.forced(pattern), run.kind
    result, before, after = views.patterns(run, pattern=name, size=2, outcome=None), run.attention, changed.attention
    expected = (
        np.where(before.mask[2], before.pattern[2], np.nan),
        np.where(after.mask[2], before.pattern[2], np.nan),
        np.where(after.mask[2], after.pattern[2], np.nan),
    )
    for drawn, weights in zip(maps(result, "maps"), expected, strict=True):
        np.testing.assert_allclose(drawn, weights, rtol=1e-5)
    kept = measure_kept(run.trace, kind, pattern)
    drawn = lines(result, "share")
    for values, expected in zip(drawn, (kept.share.ravel(), kept.share.mean(axis=1), [kept.share[-1, 2]]), strict=True):
        np.testing.assert_allclose(values, expected)
    table = result.shows["counts"]
    rows = [row for row in ("all", "visible", "kept") if row != "visible" or kind == "decoder_self"]
    assert table["cells"].tolist() == [kept.cells[row] for row in rows]
    assert table["multiply-adds"].tolist() == [kept.multiply_adds[row] for row in rows]
    means = kept.share.mean(axis=1)
    assert (result.facts["lowest"][1], result.facts["highest"][1]) == (means.min(), means.max())
    assert (result.facts["kept"], result.facts["visible"]) == (after.mask[2].sum(), before.mask[2].sum())
    assert result.facts["log_p"] == (run.trace.log_probability, changed.trace.log_probability)


@pytest.mark.usefixtures("short_texts")
def test_every_size_is_run_on_request(run_at: Callable) -> None:
    before, result = (views.patterns(run_at(), **chosen) for chosen in ({"outcome": None}, {}))
    assert "sizes" not in before.shows
    sizes, opened = pattern_sizes(run_at().trace), run_at().opened
    line, *groups = figure(result, "sizes")["data"][:3]
    assert numbers(line["x"]).tolist() == sizes
    scores = [run_at("encoder_self", 0, 0, PatternMask(size)).trace.log_probability for size in sizes]
    np.testing.assert_allclose(numbers(line["y"]), scores, rtol=1e-6)
    own = opened.translate([SOURCE])
    same, others = (numbers(group["x"]).tolist() for group in groups)
    assert sorted([*same, *others]) == sizes
    for size in (min(others), max(others), *same[:2]):
        assert (opened.translate([SOURCE], interventions=(PatternMask(size),)) == own) == (size in same)


def test_cross_attention_has_no_pattern(run_at: Callable) -> None:
    assert not views.patterns.offers(run_at("cross"))


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
