"""Gradients: every number is the model's, of two families; long work waits for its button."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model.analysis.heads.softmax import softmax_at, softmax_jacobian
from model.analysis.runs.attributions import MEASURES, judge, measure_tokens
from model.analysis.runs.gradients import distance_gradients, stream_gradients
from model.analysis.runs.swapped_weights import rank_correlation, swap_every_head, zero_values
from model.background import recurrence
from model.checkpoints.store import load_checkpoint
from model.checkpoints.translator import Translator
from model.interventions import ResidualOff, Unscaled
from model.run import Run
from pages.views.model import gradients as views
from tests.pages.conftest import TYPED
from tests.pages.figures import figure, lines, maps, numbers

PAGE, SWAPPED, ZEROING = "pages/gradients.py", "Other weights, same output?", "Value zeroing"


@pytest.fixture(params=["trained", "random"])
def weights(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def run(weights: str, run_at: Callable, families: Path) -> Run:
    """Of the translator; with random weights, of a language model."""
    if weights == "trained":
        return run_at("cross", 1, 2)
    opened = load_checkpoint(str(families / "lm"), "cpu")
    return Run.of(opened, opened.trace("Two dogs run."), "decoder_self", 1, 2)


def test_the_layers_show_the_norms_of_four_runs(run: Run, weights: str) -> None:
    result, seed = views.layers(run, weights=weights), {"trained": None, "random": 0}[weights]
    changes = ((), (ResidualOff(),), (Unscaled(),), (ResidualOff(), Unscaled()))
    expected = [stream_gradients(run.opened, run.trace, each, seed) for each in changes]
    for stack in run.trace.streams:
        for drawn, right in zip(lines(result, stack), expected, strict=True):
            assert drawn == pytest.approx(right[stack], rel=1e-6)
    first = next(iter(run.trace.streams))
    factors = [each[first][0] / each[first][-1] for each in expected]
    assert list(result.shows["factors"].iloc[:, 1]) == pytest.approx(factors, rel=1e-3)


def test_the_jacobian_is_that_of_the_chosen_row_and_temperature(run: Run) -> None:
    result, attention = views.jacobian(run, row=3, tau=0.5), run.attention
    p = softmax_at(attention.pre_softmax[2, 3], attention.mask[2, 3], 0.5)
    matrix = np.diag(p) - np.outer(p, p)
    assert maps(result, "jacobian")[0] == pytest.approx(matrix, abs=1e-6)
    drawn = result.shows["jacobian-size"].lines
    largest, frobenius = drawn.values()
    found = softmax_jacobian(attention, 2, 3, 0.5, largest.x.tolist())
    assert largest.y == pytest.approx(found.largest)
    assert frobenius.y == pytest.approx(found.frobenius)
    assert result.facts["sizes"][0][0] == pytest.approx(np.linalg.eigvalsh(matrix).max())


def test_the_gradient_over_distance_stands_beside_the_small_models(run: Run, weights: str) -> None:
    result = views.distance(run, weights=weights)
    *_, found = distance_gradients(run.opened, run.trace, None if weights == "trained" else 0)
    (line,) = result.shows["distance"].lines.values()
    assert list(line.x) == list(found.distance)
    assert line.y == pytest.approx(found.norm, rel=1e-3)
    measure = recurrence.GRADIENT_AFTER if weights == "trained" else recurrence.GRADIENT_BEFORE
    _, values = recurrence.by_seed(recurrence.read_results(), measure, recurrence.FIXED)
    assert lines(result, "rivals")[0] == pytest.approx(values.mean(axis=0))
    slope = np.exp(np.polyfit(found.distance, np.log(found.norm), 1)[0])
    assert result.shows["factors"]["factor a step"][0] == pytest.approx(slope)


def test_measures_and_curves_are_the_models_of_one_row_or_of_all(run: Run, weights: str) -> None:
    removal = {"trained": "embedding", "random": "attention"}[weights]
    seen = 3 if run.attention.causal else len(run.trace.src_tokens)
    *_, measures = measure_tokens(run.opened, run.trace, 1, [2])
    every = {"trained": {}, "random": {"all": range(len(run.trace.next_ids))}}[weights]  # of the shorter text
    for over, rows in ({"row": [2]} | every).items():
        result = views.explanation(run, row=2, removal=removal, over=over)
        for drawn, name in zip(lines(result, "measures"), MEASURES, strict=True):
            right = measures[name][0, :seen]
            assert drawn == pytest.approx(right / right.sum(), abs=1e-3), "those of the chosen row"
        check_verdict(result, *judge(run.opened, run.trace, 1, rows, removal))


def check_verdict(result: Any, *verdicts: Any) -> None:
    verdict = verdicts[-1]
    for side, name in enumerate(("deletion", "insertion")):
        for drawn, log_p in zip(lines(result, name), verdict.log_p.mean(axis=0)[:, side], strict=True):
            assert drawn == pytest.approx(log_p, abs=1e-3)
    frame = result.shows["verdict"]
    assert list(frame["deletion: log p lost"]) == pytest.approx(verdict.deletion.mean(axis=0), abs=1e-3)
    assert list(frame["insertion: log p gained"]) == pytest.approx(verdict.insertion.mean(axis=0), abs=1e-3)
    gradient = frame["ρ with gradient"].to_numpy()[:4]
    assert gradient == pytest.approx(np.nanmean(verdict.agreement, axis=0)[:, 0], abs=0.02)


@pytest.mark.usefixtures("fresh_caches")
def test_all_rows_wait_for_the_button(open_app: Callable) -> None:
    short = TYPED | {"source": "a dog", "typed": "Ein Hund."}
    app = open_app(PAGE, **short, part="Does attention explain?", layer="1")
    assert app.get("plotly_chart"), "one row is there at once"
    app.segmented_control(key="gradients_over").set_value("all").run()
    assert not app.get("plotly_chart")
    app.button(key="gradients_measure").click().run()
    assert figure(app, "gradients-measures")


def test_the_points_are_the_heads_swapped_one_by_one(run_at: Callable) -> None:
    run = run_at("cross", 1, 2)
    *_, right = swap_every_head(run.opened, run.trace, "cross")
    for way, measure in (("uniform", "tv"), ("permuted", "jsd")):
        result = views.other_weights(run, which="kind", way=way, distance=measure, outcome=right)
        points, found = figure(result, "swaps")["data"][0], getattr(right, way)
        assert numbers(points["x"]) == pytest.approx(found[f"pattern_{measure}"].ravel(), abs=1e-5)
        assert numbers(points["y"]) == pytest.approx(found[f"output_{measure}"].ravel(), abs=1e-5)
        assert points["text"][4 + 2] == "1.2"
    table = views.other_weights(run).shows["swaps"]
    for column, name in ((1, "pattern_tv"), (2, "output_tv")):
        assert table.iloc[0, column] == pytest.approx(right.uniform[name][1, 2], abs=1e-5)


def test_value_zeroing_stands_beside_the_weights(run_at: Callable) -> None:
    run = run_at("cross", 0, 3)
    *_, right = zero_values(run.opened, run.trace, "cross", 0, 3)
    weights, shares = run.attention.pattern[3].mean(axis=0), right.share.mean(axis=0)
    result = views.value_zeroing(run)
    drawn = lines(result, "zeroing")
    assert np.array_equal(drawn[0], weights)
    assert drawn[1] == pytest.approx(shares, abs=1e-4)
    assert result.facts["rank"] == pytest.approx(rank_correlation(weights, shares), abs=1e-3)


@pytest.mark.usefixtures("fresh_caches")
@pytest.mark.parametrize(
    ("tab", "key", "waits"),
    [
        ({"part": SWAPPED}, "explain_swap", False),
        ({"part": SWAPPED, "explain_which": "Every head of this kind"}, "explain_swap", True),
        ({"part": ZEROING}, "explain_zero", False),
    ],
)
def test_all_heads_of_a_kind_wait_for_the_button_and_the_head_can_be_chosen_in_the_sidebar(
    tab: dict, key: str, waits: bool, open_app: Callable
) -> None:
    app = open_app(PAGE, **TYPED, **tab)
    controls = [app.segmented_control(key="kind"), *(app.select_slider(key=name) for name in ("layer", "head"))]
    assert not any(control.disabled for control in controls)
    assert bool(app.get("plotly_chart")) != waits
    if waits:
        app.button(key=key).click().run()
        assert figure(app, "gradients-swaps")


@pytest.mark.parametrize("source", ["A", "A dog runs. " * 12])
def test_one_word_and_a_hundred_tokens(source: str, translator: Translator) -> None:
    run = Run.of(translator, translator.trace(source, beam_size=1), "decoder_self")
    assert views.value_zeroing(run).facts["done"]
    for which in ("head", "kind"):
        assert views.other_weights(run, which=which).facts["done"]
