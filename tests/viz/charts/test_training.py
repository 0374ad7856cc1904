"""Figures of training show the numbers that they were given, and nothing that is masked or missing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from viz.charts.training import panels_of, run_curves, schedule_chart, smoothing_chart

STEPS = np.array([10.0, 20.0, 30.0])
SCORES = ["dev_bleu", "dev_bits_per_byte", "dev_accuracy"]


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("lacking", [None, 0, 1, 2, 3])
def test_every_curve_is_its_column_and_a_missing_column_is_no_curve(score: str, lacking: int | None) -> None:
    drawn = [column for panel in panels_of([score]) for column in panel.columns]
    assert score in drawn
    log = {name: np.array([i + 3.0, np.nan, i + 1.0]) for i, name in enumerate(drawn) if i != lacking}
    figure = run_curves({"step": STEPS, **log}, "step")
    assert len(figure.data) == len(log)
    for drawn, values in zip(figure.data, log.values(), strict=True):
        assert np.array_equal(drawn.x, STEPS)
        assert np.array_equal(drawn.y, values, equal_nan=True)


@pytest.mark.parametrize("score", SCORES)
def test_the_losses_share_a_panel_and_the_score_has_its_own(score: str) -> None:
    figure = run_curves({"step": STEPS, "train_loss": STEPS, "dev_loss": STEPS, score: STEPS}, "step")
    training, development, scored = (drawn.yaxis for drawn in figure.data)
    assert training == development != scored
    assert len({drawn.name for drawn in figure.data}) == 3


def test_the_schedule_has_the_curves_the_runs_dots_and_the_peak() -> None:
    curves = {"chosen": STEPS / 7, "own": STEPS / 9}
    figure = schedule_chart(STEPS, curves, (STEPS[:2], STEPS[1:]), (20, 0.5))
    assert [drawn.mode for drawn in figure.data] == ["lines", "lines", "markers"]
    for drawn, values in zip(figure.data, [*curves.values(), STEPS[1:]], strict=True):
        assert np.array_equal(drawn.y, values)
    assert figure.layout.shapes[0].x0 == 20
    assert len(schedule_chart(STEPS, {"chosen": STEPS}, None, (20, 0.5)).data) == 1


@given(st.lists(st.floats(1e-12, 1), min_size=1, max_size=11), st.floats(0, 0.5))
def test_target_and_model_each_sum_to_one_with_all_others(weights: list[float], epsilon: float) -> None:
    model = np.array(weights) / (sum(weights) + 0.5)
    target = np.full(len(model), epsilon / 100)
    target[0] += 1 - epsilon
    figure = smoothing_chart(["▁<b>x</b>"] * len(model), target, model, 0, 100)
    for drawn, values in zip(figure.data, (target, model), strict=True):
        assert np.array_equal(drawn.x[:-1], values)
        assert drawn.x.sum() == pytest.approx(1)
    assert figure.layout.yaxis.ticktext[0] == "<b>&lt;b&gt;x&lt;/b&gt;</b>"
    assert figure.layout.yaxis.ticktext[-1] == f"all {100 - len(model)} others"
    low, high = figure.layout.xaxis.range
    assert all(low <= np.log10(value) <= high for value in (*target, *model) if value)
    assert len(figure.layout.xaxis.tickvals) <= 17
