"""Two runs held against each other: the numbers are those of the two Traces, and equal runs are told from others."""

import numpy as np
import pytest

from model.analysis.runs.two_runs import are_identical, largest_changes, top_tokens
from model.interventions import AttentionTemperature, HeadGate, MaskEdit


def test_under_identities_two_runs_are_identical(translator, trace) -> None:
    same = translator.rerun(trace, (AttentionTemperature(1.0), HeadGate(1.0, "cross", 1, 0), MaskEdit(kind="cross")))
    assert are_identical(trace, same)
    assert all(not values.any() for values in largest_changes(trace, same).values())


def test_a_silent_head_moves_nothing_before_it_and_something_after_it(translator, trace) -> None:
    silent = translator.rerun(trace, (HeadGate(0.0, "cross", 0, 1),))
    changed = largest_changes(trace, silent)
    assert not are_identical(trace, silent)
    assert not changed["encoder_self"].any()
    assert not changed["cross"][0].any()
    assert not changed["decoder_self"][0].any()
    for kind in ("decoder_self", "cross"):
        one, other = (run.attention(kind, 1).pattern for run in (trace, silent))
        assert np.array_equal(changed[kind][1], np.abs(other - one).max(axis=(1, 2)))
        assert changed[kind][1].any()


def test_runs_on_other_words_are_not_compared_cell_by_cell(translator, trace) -> None:
    with pytest.raises(ValueError, match="same target"):
        largest_changes(trace, translator.trace(trace.source, "Ein Hund."))


def test_top_tokens_are_the_best_of_both_runs_and_the_rest_is_stated() -> None:
    before, after = np.array([0.5, 0.3, 0.1, 0.06, 0.04]), np.array([0.05, 0.05, 0.1, 0.1, 0.7])
    top = top_tokens(before, after, k=2, with_ids=(3,))
    assert set(top.ids) == {0, 1, 2, 3, 4}, "0 and 1 before, 4 and 2 after, and 3 was asked for"
    assert top.ids[0] == 4
    assert np.array_equal(top.before, before[list(top.ids)])
    assert top.before.sum() + top.rest[0] == pytest.approx(1)
    assert top.after.sum() + top.rest[1] == pytest.approx(1)
