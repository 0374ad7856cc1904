"""Efficient attention: tiles, sums, features and costs that are drawn are those of the chosen head and model."""

import re
from collections.abc import Callable

import numpy as np
import pytest

from model.analysis.mechanisms.flash import flash_attention
from model.analysis.mechanisms.linear_attention import linear_attention, sweep_features
from model.background import attention_costs as costs
from model.background.layer_size import layer_sizes
from model.background.stopwatch import fit_power, measure
from model.trace import KIND_TITLES as KINDS
from pages.views.beyond import timing
from tests.pages.figures import figure, numbers, words

pytest.importorskip("streamlit")

PAGE = "pages/efficient_attention.py"
SOURCE, TARGET = "A dog runs and a cat sat.", "Ein Hund rennt."


@pytest.mark.parametrize("name", KINDS)
def test_a_step_draws_its_tile_and_the_output_so_far(name: str, open_app: Callable, translator) -> None:
    app = open_app(PAGE, **place(KINDS[name]), flash_tile="2 × 2", flash_step="4")
    assert not app.exception
    attention = translator.trace(SOURCE, TARGET).attention(name, 1)
    run = flash_attention(attention, 2, 2)
    (top, bottom), (left, right) = run.rows[3], run.columns[3]
    tile = numbers(figure(app, "efficient_attention-tile")["data"][0]["z"])
    assert np.isfinite(tile).sum() == attention.mask[2, top:bottom, left:right].sum()
    np.testing.assert_allclose(tile[top:bottom, left:right], run.scores[top:bottom, left:right], rtol=1e-5)
    np.testing.assert_allclose(
        numbers(figure(app, "efficient_attention-output")["data"][0]["z"]), run.o[4], rtol=1e-4, atol=1e-6
    )
    assert app.dataframe[0].value["ℓ after"].tolist() == run.l[4, top:bottom].tolist()
    said = words(app)
    assert f"{run.tile_bytes:,} bytes" in said
    assert f"{len(run.rows)} of {len(run.rows) + len(run.skipped)} tiles were read" in said
    assert "a change in this run" not in said
    assert ("masked as a whole and skipped" in said) == (name == "decoder_self")


def test_another_tile_size_keeps_to_the_steps_there_are(open_app: Callable) -> None:
    app = open_app(PAGE, source=SOURCE, flash_tile="2 × 2", flash_step="20")
    app.session_state["flash_tile"] = 8
    app.run()
    assert not app.exception
    step, steps = re.search(r"Tile (\d+)\D+of (\d+)", words(app)).groups()
    assert step == steps


def test_weights_changed_after_q_and_k_are_said_to_differ(open_app: Callable) -> None:
    app = open_app(PAGE, source=SOURCE, changes="uniform@encoder_self", kept="1")
    assert not app.exception
    assert "a change in this run acts on the scores or weights after q and k" in words(app)


def place(kind: str) -> dict[str, str]:
    return {"source": SOURCE, "target": "Typed", "typed": TARGET, "kind": kind, "layer": "1", "head": "2"}


@pytest.mark.parametrize("kind", KINDS)
def test_errors_and_maps_of_linear_attention_are_those_of_the_head(kind: str, open_app: Callable, translator) -> None:
    query = {"efficient": "Linear attention", "linear_features": "32", "linear_draw": "3"}
    app = open_app(PAGE, **place(KINDS[kind]), **query)
    assert not app.exception
    attention = translator.trace(SOURCE, TARGET).attention(kind, 1)
    sweep, run = sweep_features(attention, 2), linear_attention(attention, 2, 32, 3)
    drawn = (("efficient_attention-weights", sweep.weights_band), ("efficient_attention-z", sweep.z_band))
    for error, (key, (low, median, high)) in zip((0, 1), drawn, strict=True):
        lines = figure(app, key)["data"]
        for line, expected in zip(lines, (high, low, median), strict=False):
            np.testing.assert_allclose(numbers(line["y"]), expected, rtol=1e-9)
            assert list(numbers(line["x"])) == sweep.features.tolist()
        np.testing.assert_allclose(numbers(lines[3]["y"]), (run.weight_errors, run.z_errors)[error][0])
    mask = attention.mask[2]
    maps = [trace for trace in figure(app, "efficient_attention-maps")["data"] if "coloraxis" in trace]
    for trace, weights in zip(maps, (run.exact, run.random, run.elu), strict=True):
        np.testing.assert_allclose(numbers(trace["z"]), np.where(mask, weights, np.nan), rtol=1e-5)
    said = words(app)
    assert f"{sweep.z_band[1, 0]:.1%} with 4 features and {sweep.z_band[1, -1]:.1%} with 1,024" in said
    enough = sweep.enough(0.1)
    assert ("No number of features" in said) == (enough is None)
    assert enough is None or f"**{enough:,} is the smallest number" in said
    assert "More features cannot remove" not in said
    assert "Without any matrix of weights" in said
    (queries, keys), (_, d_k, d_v) = mask.shape, (0, attention.d_k, attention.v.shape[-1])
    assert app.dataframe[0].value["multiply-adds"].tolist() == [
        queries * keys * (d_k + d_v),
        (queries + keys) * 32 * (d_v + 1 + d_k),
        (queries + keys) * d_k * (d_v + 1),
    ]


def test_a_change_after_q_and_k_is_an_error_that_features_cannot_remove(open_app: Callable) -> None:
    app = open_app(PAGE, source=SOURCE, efficient="Linear attention", changes="uniform@encoder_self", kept="1")
    assert not app.exception
    assert "More features cannot remove all of it" in words(app)


@pytest.mark.parametrize(
    ("kind", "memory", "part"),
    [
        ("encoder_self", "All", "memory"),
        ("decoder_self", "Cache or state", "cache"),
        ("cross", "Parameters", "parameters"),
    ],
)
def test_costs_are_counted_from_the_models_sizes(
    kind: str, memory: str, part: str, open_app: Callable, translator
) -> None:
    query = {"cost_n": "100,000", "cost_window": "128", "cost_features": "64", "cost_bytes": "bf16"}
    app = open_app(PAGE, efficient="Cost over n", cost_memory=memory, **query, **place(KINDS[kind]))
    assert not app.exception
    trace = translator.trace(SOURCE, TARGET)
    sizes, here = layer_sizes(trace, kind), len(trace.attention(kind, 1).key_tokens)
    for key, name, factor in (
        ("efficient_attention-work", "multiply_adds", 1),
        ("efficient_attention-memory", part, 2),
    ):
        drawn = figure(app, key)
        n = numbers(drawn["data"][0]["x"]).astype(int)
        assert {here, 100_000, 1_000_000} <= set(n)
        curves = costs.cost_over_n(trace, kind, n.tolist(), 128, 64)
        assert [line["name"] for line in drawn["data"]] == list(curves.methods)
        for line, expected in zip(drawn["data"], getattr(curves, name), strict=True):
            np.testing.assert_allclose(numbers(line["y"]), factor * expected)
        assert [shape["x0"] for shape in drawn["layout"]["shapes"]] == [here, 100_000]
        assert drawn["layout"]["annotations"][0]["text"] == f"this run: {here}"
    counted = costs.attention_costs(sizes, 100_000, 128, 64)
    table = app.dataframe[0].value
    assert table["attention"].tolist() == list(counted)
    assert table["multiply-adds"].tolist() == [f"{cost.multiply_adds:,}" for cost in counted.values()]
    assert table["together, bytes"].tolist() == [f"{2 * cost.memory:,}" for cost in counted.values()]
    d = sizes[0].d_model
    crossing = 2 * 64 * (sizes[0].d_k + sizes[0].d_v + 1) // (sizes[0].d_k + sizes[0].d_v)
    said = words(app)
    assert f"linear needs fewer above n = {crossing:,}" in said
    assert f"$d_{{\\text{{model}}}}$ = {d}, {sizes[0].heads} heads" in said
    assert ("Cross-attention is counted" in said) == (kind == "cross")
    assert ("An encoder reads" in said) == (kind == "encoder_self")


@pytest.mark.usefixtures("fresh_caches")
def test_nothing_is_timed_before_the_button_is_pressed(open_app: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(timing, "measure", lambda *arguments: asked.append(arguments))
    app = open_app(PAGE, source=SOURCE, efficient="Cost over n")
    assert not app.exception
    assert not asked
    assert "Nothing is timed until" in words(app)
    assert not [one for one in app.get("plotly_chart") if one.proto.id.endswith("efficient_attention-times")]


@pytest.mark.usefixtures("fresh_caches")
def test_measured_points_and_their_fits_are_drawn(open_app: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, short = [], (4, 8, 16, 32)

    def measure_short(contenders, device, lengths):
        asked.append(tuple(lengths))
        return measure(contenders, device, short, rounds=3)

    monkeypatch.setattr(timing, "measure", measure_short)
    app = open_app(PAGE, source=SOURCE, efficient="Cost over n")
    app.button(key="cost-time").click().run()
    assert not app.exception
    assert asked == [costs.MEASURED]
    drawn, table = figure(app, "efficient_attention-times")["data"], app.dataframe[1].value
    names = (costs.EAGER, costs.FUSED, costs.ELU)
    for name, points, line in zip(names, drawn[:3], drawn[3:], strict=True):
        times = numbers(points["y"])
        assert points["name"] == name
        assert points["mode"] == "markers"
        assert list(numbers(points["x"])) == list(short)
        assert (times > 0).all()
        np.testing.assert_allclose(times, table[f"{name}, ms"])
        factor, power = fit_power(short, times)
        assert list(numbers(line["x"])) == list(short[-3:])
        np.testing.assert_allclose(numbers(line["y"]), factor * np.array(short[-3:]) ** power)
        assert f"**{power:.2f}** ({name})".replace("-", "−") in words(app)
    app.run()
    assert list(numbers(figure(app, "efficient_attention-times")["data"][0]["y"])) == list(numbers(drawn[0]["y"]))
