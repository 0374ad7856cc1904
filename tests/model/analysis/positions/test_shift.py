"""A text that stands further to the right is another run, and the model stays as it is."""

import pytest

from model.analysis.positions.shift import shift_positions


def test_a_shift_by_nothing_changes_nothing_and_a_far_one_is_another_run(translator) -> None:
    trace = translator.trace("the dog sees a cat")
    found = shift_positions(translator, trace, (0, 300))
    assert found[0] == pytest.approx(0, abs=1e-6)
    assert found[300] != pytest.approx(0, abs=1e-4)
    assert translator.rerun(trace, ()).log_probability == trace.log_probability
