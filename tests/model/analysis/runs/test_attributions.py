"""Four measures of what a token mattered, and curves of removing tokens in their order."""

import numpy as np
import pytest

from model.analysis.runs.attributions import MEASURES, SHARES, _log_p, judge, measure_tokens
from model.analysis.runs.gradients import gradient_times_input
from model.analysis.runs.swapped_weights import zero_values
from model.hooks import editing
from model.interventions import ForbidSource, HeadGate
from tests.model.analysis.runs.test_gradients import opened

SOURCE, TARGET = "Two dogs play", "Zwei Hunde rennen"


@pytest.mark.parametrize("family", ["translator", "lm", "mlm"])
def test_the_measures_are_those_of_the_run(family, tokenizer):
    translator, trace = opened(family, tokenizer)
    kind = {"translator": "cross", "lm": "decoder_self", "mlm": "encoder_self"}[family]
    attention, rows = trace.attention(kind, 1), [1, 3]
    *_, found = measure_tokens(translator, trace, 1, rows)
    assert tuple(found) == MEASURES
    stack = "decoder" if family == "lm" else "encoder"
    np.testing.assert_array_equal(found["gradient"], abs(gradient_times_input(translator, trace, rows)[stack]))
    np.testing.assert_allclose(found["weights"], attention.pattern.mean(axis=0)[rows])
    *_, zeroed = zero_values(translator, trace, kind, 1)
    np.testing.assert_array_equal(found["zeroing"], zeroed.distance[rows])
    for query, row in enumerate(rows):
        for key in range(attention.pattern.shape[2]):
            parts = [
                attention.pattern[h, row, key] * attention.v[h, key] @ attention.projections.w_o[h] for h in range(4)
            ]
            assert found["norms"][query, key] == pytest.approx(np.linalg.norm(sum(parts)))


@pytest.mark.parametrize("removal", ["embedding", "attention"])
@pytest.mark.parametrize("family", ["translator", "lm", "mlm"])
def test_the_curves_begin_and_end_at_the_whole_text_and_at_none(family, removal, tokenizer):
    translator, trace = opened(family, tokenizer)
    first, *verdicts = judge(translator, trace, 1, [2, 4], removal)
    assert first.done == 0
    assert [verdict.done for verdict in verdicts] == pytest.approx([step / 18 for step in range(1, 19)])
    assert np.isnan(verdicts[8].log_p[1]).all()
    assert np.array_equal(verdicts[8].log_p[0], verdicts[-1].log_p[0])
    last = verdicts[-1]
    assert last.log_p.shape == (2, 5, 2, len(SHARES))
    for i, row in enumerate((2, 4)):
        np.testing.assert_allclose(last.log_p[i, :, 0, 0], trace.target_log_probabilities[row])
        np.testing.assert_allclose(last.log_p[i, :, 1, -1], trace.target_log_probabilities[row])
        np.testing.assert_allclose(last.log_p[i, :, 0, -1], last.log_p[i, :, 1, 0])
    np.testing.assert_allclose(last.deletion, (last.log_p[:, :, 0, :1] - last.log_p[:, :, 0]).mean(axis=-1))
    np.testing.assert_allclose(last.insertion, (last.log_p[:, :, 1] - last.log_p[:, :, 1, :1]).mean(axis=-1))
    np.testing.assert_allclose(np.diagonal(last.agreement, axis1=1, axis2=2), 1)


def test_a_token_hidden_from_attention_is_a_forbidden_source(translator):
    trace = translator.trace(SOURCE, TARGET, interventions=(HeadGate(0.5, layer=0),))
    present = np.ones((2, len(trace.src_ids)), dtype=bool)
    present[1, [0, 3]] = False
    found = _log_p(translator, trace, 2, present, "attention")
    hidden = translator.rerun(trace, (*trace.interventions, ForbidSource((0, 3))))
    assert found[0] == pytest.approx(trace.target_log_probabilities[2], abs=1e-5)
    assert found[1] == pytest.approx(hidden.target_log_probabilities[2], abs=1e-5)


def test_a_token_removed_has_an_embedding_of_0_and_keeps_its_position(translator):
    trace = translator.trace(SOURCE, TARGET)
    present = np.arange(len(trace.src_ids))[None] != 1
    found = _log_p(translator, trace, 2, present, "embedding")

    def erase(embedding):
        erased = embedding.clone()
        erased[:, 1] = 0
        return erased

    with editing(translator.model, {"src_embedding.embedding": erase}):
        expected = translator.rerun(trace, (HeadGate(1.0),)).target_log_probabilities[2]
    assert found[0] == pytest.approx(expected, abs=1e-5)


def test_the_order_of_a_curve_is_that_of_its_measure(tokenizer):
    """With one token left, it is the largest of the measure."""
    translator, trace = opened("translator", tokenizer)
    *_, verdict = judge(translator, trace, 1, [3])
    n = len(trace.src_ids)
    first = next(i for i, share in enumerate(SHARES) if round(share * n) == 1)
    *_, measures = measure_tokens(translator, trace, 1, [3])
    assert all(np.array_equal(verdict.measures[name], values) for name, values in measures.items())
    for number, values in enumerate(measures.values()):
        present = np.arange(n)[None] == values[0].argmax()
        alone = _log_p(translator, trace, 3, present, "embedding")
        assert verdict.log_p[0, number, 1, first] == pytest.approx(alone[0])
