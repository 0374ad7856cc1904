"""The figure of label smoothing shows the numbers that it was given."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from viz.special.training import smoothing_chart


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
