"""Heads switched off side by side in one pass score as they do one by one."""

import numpy as np
import pytest
import torch

from model.analysis.head_importance import HeadScores, Question, head_scores, prune
from model.checkpoints.translator import Translator
from model.interventions import HeadGate, Intervention, Unscaled
from model.network.config import BOS
from model.trace import Trace, log_probabilities
from tests.bench.head_scoring import cut, head_scoring
from tests.model.strategies import KINDS
from tests.model.tiny import SENTENCES, random_model


@pytest.fixture(scope="module")
def double(tiny_config, tokenizer) -> Translator:
    return Translator("tiny", "0" * 64, random_model(tiny_config, dtype=torch.float64), tokenizer)


@pytest.fixture(scope="module")
def traces(double) -> list[Trace]:
    return [double.trace(*pair) for pair in SENTENCES[:2]]


def log_probability(translator: Translator, trace: Trace, *changes: Intervention) -> float:
    """log p(target | source) from a run of its own."""
    changed = translator.trace(trace.source, trace.translation, interventions=changes)
    assert changed.next_ids == trace.next_ids
    return np.log(changed.probabilities[range(len(trace.next_ids)), list(trace.next_ids)]).sum()


def finished(double: Translator, traces: list[Trace], *args, **kwargs) -> HeadScores:
    *_, scores = head_scores(double.model, [(t.src_ids, t.next_ids) for t in traces], *args, **kwargs)
    return scores


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["zero", "mean"])
def test_one_pass_gives_what_a_run_for_each_head_gives(double, traces, kind, mode):
    scores = finished(double, traces[:1], kind, mode)
    plain = log_probability(double, traces[0])
    assert scores.log_probabilities[0] == pytest.approx(plain, abs=1e-10)
    for layer, head in np.ndindex(2, 4):
        alone = log_probability(double, traces[0], HeadGate(0.0, kind, layer, head, mode)) - plain
        assert scores.changes[0, layer, head] == pytest.approx(alone, abs=1e-10)
    assert np.unique(scores.changes).size == 8, "and each head has a score of its own"


@pytest.mark.parametrize(("position", "against"), [(0, None), (3, None), (3, 17)])
def test_one_token_or_its_lead_over_another_word_is_scored_by_its_row_alone(double, traces, position, against):
    trace, question = traces[0], Question(position, against)

    def score(*changes: Intervention) -> float:
        row = log_probabilities(double.rerun(trace, changes).logits)[position]
        return row[trace.next_ids[position]] - (0 if against is None else row[against])

    scores = finished(double, traces[:1], "cross", question=question)
    assert scores.log_probabilities[0] == pytest.approx(score(), abs=1e-10)
    for layer, head in np.ndindex(2, 4):
        alone = score(HeadGate(0.0, "cross", layer, head)) - score()
        assert scores.changes[0, layer, head] == pytest.approx(alone, abs=1e-10)


def test_several_sentences_score_their_mean(double, traces):
    both = finished(double, traces, "cross")
    apart = [finished(double, [trace], "cross").change for trace in traces]
    np.testing.assert_allclose(both.change, np.mean(apart, axis=0), rtol=0, atol=1e-12)


def test_how_many_run_at_once_makes_no_difference_and_progress_is_told(double, traces):
    whole = finished(double, traces, "encoder_self")
    pairs = [(trace.src_ids, trace.next_ids) for trace in traces]
    steps = list(head_scores(double.model, pairs, "encoder_self", rows=3))
    assert len(steps) == 6
    done = [step.done for step in steps]
    assert done == sorted(done)
    assert done[0] == 3 / 16
    assert done[-1] == 1
    np.testing.assert_allclose(steps[-1].changes, whole.changes, rtol=0, atol=1e-10)
    assert np.isnan(steps[0].change).any(), "what is not known yet is not shown as a number"


def test_heads_are_scored_on_top_of_other_changes(double, traces):
    scores = finished(double, traces[:1], "cross", interventions=(Unscaled(),))
    both = log_probability(double, traces[0], Unscaled(), HeadGate(0.0, "cross", 1, 2))
    assert scores.changes[0, 1, 2] == pytest.approx(both - log_probability(double, traces[0], Unscaled()), abs=1e-10)


def test_pruning_takes_the_heads_that_are_missed_least():
    cross = HeadScores("cross", "mean", np.zeros(1), np.array([[[-1.0, -0.1], [0.2, -3.0]]]))
    own = HeadScores("encoder_self", "zero", np.zeros(1), np.array([[[-0.05, -9.0]]]))
    least, *others = prune([cross, own], 3)
    assert least == HeadGate(0.0, "cross", 1, 0, "mean")
    assert others == [HeadGate(0.0, "encoder_self", 0, 0), HeadGate(0.0, "cross", 0, 1, "mean")]
    assert prune([cross, own], 0) == ()
    assert len(prune([cross, own], 6)) == 6
    with pytest.raises(ValueError, match="k must lie between 0 and 6"):
        prune([cross, own], 7)


def test_what_scoring_costs_is_told_beside_one_pass_and_a_pass_for_each_head(double, traces):
    pairs = [(list(trace.src_ids), [BOS, *trace.next_ids]) for trace in traces]
    counted, batched, apart = head_scoring(double.model, pairs, 1)
    assert counted.startswith("all 8 cross-attention heads scored, 20 source and 20 target tokens")
    assert "forward passes of" in batched
    assert "times as long" in apart
    assert cut(range(40)) == [*range(19), 39]
    assert cut([5, 6, 3]) == [5, 6, 3]


def test_what_cannot_be_scored_is_refused_in_a_sentence(double, traces):
    with pytest.raises(ValueError, match="0 sentences"):
        finished(double, [], "cross")
    with pytest.raises(ValueError, match="0 layers of 'self'"):
        finished(double, traces, "self")
    with pytest.raises(ValueError, match="mode must be zero or mean"):
        finished(double, traces, "cross", "median")
