"""Evenness is the entropy of a row beside that of equal weights."""

import math

import numpy as np
import pytest

from model.analysis.heads.evenness import SEEDS, evenness, mean_evenness, untrained_evenness


def test_evenness_is_the_entropy_of_a_row_beside_that_of_equal_weights(trace) -> None:
    for attention in trace.attentions.values():
        found = evenness(attention)
        for head, query in np.ndindex(found.shape):
            weights = attention.pattern[head, query][attention.mask[head, query]].astype(float)
            if len(weights) == 1:
                assert math.isnan(found[head, query])
                continue
            expected = -sum(w * math.log(w) for w in weights if w > 0) / math.log(len(weights))
            assert found[head, query] == pytest.approx(expected, abs=1e-9)


def test_an_untrained_model_attends_more_evenly_and_the_trained_one_stays_as_it_is(translator, trace) -> None:
    before = translator.model.output.weight.detach().clone()
    found = untrained_evenness(translator, trace)
    assert found.shape == (len(SEEDS),)
    assert len(set(found)) == len(SEEDS)
    assert (found > mean_evenness(trace)).all()
    assert (translator.model.output.weight == before).all()
