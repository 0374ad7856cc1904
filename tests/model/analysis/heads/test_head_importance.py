"""Heads switched off side by side score as they do one by one, in every family; and so do more and more together."""

from itertools import cycle

import numpy as np
import pytest
import torch

from model.analysis import sweep
from model.analysis.heads.head_importance import MOST_STEPS, HeadScores, ScoredText, head_scores, prune, pruning_curve
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.translator import Translator
from model.interventions import HeadGate, Intervention, Unscaled
from model.trace import Trace, log_probabilities
from tests.bench.head_scoring import head_scoring
from tests.model.checkpoints.huggingface.test_families import opened as opened_of_others
from tests.model.checkpoints.huggingface.test_families import traced
from tests.model.checkpoints.test_language_model import opened as of_one_text
from tests.model.strategies import KINDS, short_texts
from tests.model.tiny import SENTENCES, random_checkpoint


@pytest.fixture(scope="module")
def double(tiny_config, tokenizer) -> Translator:
    return random_checkpoint(tiny_config, tokenizer, torch.float64)


@pytest.fixture(scope="module")
def traces(double) -> list[Trace]:
    return [double.trace(*pair) for pair in SENTENCES[:2]]


def log_probability(translator: Translator, trace: Trace, *changes: Intervention) -> float:
    """log p(target | source) from a run of its own."""
    changed = translator.trace(trace.source, trace.translation, interventions=changes)
    assert changed.next_ids == trace.next_ids
    return np.log(changed.probabilities[range(len(trace.next_ids)), list(trace.next_ids)]).sum()


def finished(opened: Checkpoint, traces: list[Trace], *args, **kwargs) -> HeadScores:
    *_, (share, scores) = head_scores(opened, traces, *args, **kwargs)
    assert share == 1
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
    trace, question = traces[0], ScoredText(position, against)

    def score(*changes: Intervention) -> float:
        row = log_probabilities(double.rerun(trace, changes).logits)[position]
        return row[trace.next_ids[position]] - (0 if against is None else row[against])

    scores = finished(double, traces[:1], "cross", questions=[question])
    assert scores.log_probabilities[0] == pytest.approx(score(), abs=1e-10)
    for layer, head in np.ndindex(2, 4):
        alone = score(HeadGate(0.0, "cross", layer, head)) - score()
        assert scores.changes[0, layer, head] == pytest.approx(alone, abs=1e-10)


def test_several_sentences_score_their_mean(double, traces):
    both = finished(double, traces, "cross")
    apart = [finished(double, [trace], "cross").change for trace in traces]
    np.testing.assert_allclose(both.change, np.mean(apart, axis=0), rtol=0, atol=1e-12)


def test_how_many_run_at_once_makes_no_difference_and_progress_is_told(double, traces, monkeypatch):
    whole = finished(double, traces, "encoder_self")
    monkeypatch.setattr(sweep, "BATCH_NUMBERS", 3 * sweep._largest_activation(double, traces[0]))
    shares = []
    for share, scores in head_scores(double, traces, "encoder_self"):
        shares.append(share)
        assert np.isnan(scores.change).any() == (share < 1), "what is not known yet is not shown as a number"
    assert shares == sorted(shares)
    np.testing.assert_allclose(scores.changes, whole.changes, rtol=0, atol=1e-10)


def test_heads_are_scored_on_top_of_other_changes(double, traces):
    changed = double.rerun(traces[0], (Unscaled(),))
    scores = finished(double, [changed], "cross")
    both = log_probability(double, traces[0], Unscaled(), HeadGate(0.0, "cross", 1, 2))
    assert scores.changes[0, 1, 2] == pytest.approx(both - log_probability(double, traces[0], Unscaled()), abs=1e-10)


@pytest.mark.parametrize(
    ("family", "mode"),
    [*zip(("decoder", "encoder", "GPT-2", "Gemma 2", "BERT", "T5"), cycle(("zero", "mean")), strict=False)],
)
def test_heads_of_every_family_score_as_a_run_without_each(family, mode, tokenizer):
    if family in ("decoder", "encoder"):
        layers = {"n_decoder_layers": 0, "n_encoder_layers": 2} if family == "encoder" else {}
        opened = of_one_text(tokenizer, **layers)
        trace = opened.trace("Two dogs run.")
    else:
        opened, trace = opened_of_others(family), traced(family)
    kind = trace.kinds[0]
    scores = finished(opened, [trace], kind.name, mode)
    assert scores.changes.shape == (1, len(kind.layers), kind.heads)
    for layer, head in ((0, 1), (1, 0)):
        off = opened.rerun(trace, (HeadGate(0.0, kind.name, kind.layers[layer], head, mode),))
        expected = off.log_probability - trace.log_probability
        assert scores.changes[0, layer, head] == pytest.approx(expected, abs=1e-3)
    *_, (_, curve) = pruning_curve(opened, trace, trace, prune([scores], scores.change.size))
    off = opened.rerun(trace, prune([scores], scores.change.size))
    assert curve.log_probabilities[[0, -1]] == pytest.approx([trace.log_probability, off.log_probability], abs=1e-3)
    assert curve.same[0] == 1


def test_pruning_takes_the_heads_that_are_missed_least():
    cross = HeadScores("cross", (0, 1), "mean", np.zeros(1), np.array([[[-1.0, -0.1], [0.2, -3.0]]]))
    own = HeadScores("encoder_self", (3,), "zero", np.zeros(1), np.array([[[-0.05, -9.0]]]))
    least, *others = prune([cross, own], 3)
    assert least == HeadGate(0.0, "cross", 1, 0, "mean")
    assert others == [HeadGate(0.0, "encoder_self", 3, 0), HeadGate(0.0, "cross", 0, 1, "mean")]
    assert prune([cross, own], 0) == ()
    assert len(prune([cross, own], 6)) == 6
    with pytest.raises(ValueError, match="k must lie between 0 and 6"):
        prune([cross, own], 7)


def test_what_scoring_costs_is_told_beside_one_pass_and_a_pass_for_each_head(double, traces):
    texts = [(trace.source, trace.translation) for trace in traces]
    counted, batched, apart = head_scoring(double, texts, 1)
    assert counted.startswith("all 8 cross-attention heads scored")
    assert "forward passes of" in batched
    assert "times as long" in apart


def test_what_cannot_be_scored_is_refused_in_a_sentence(double, traces):
    with pytest.raises(ValueError, match="0 texts"):
        finished(double, [], "cross")
    with pytest.raises(ValueError, match="0 layers of 'self'"):
        finished(double, traces, "self")
    with pytest.raises(ValueError, match="mode must be zero or mean"):
        finished(double, traces, "cross", "median")


@pytest.mark.parametrize("mode", ["zero", "mean"])
def test_each_point_of_the_curve_is_a_run_without_these_heads(double, mode):
    trace = double.trace(*SENTENCES[0], interventions=(Unscaled(),))
    scores = [finished(double, [trace], kind, mode) for kind in KINDS]
    with short_texts(12):
        greedy = double.trace(trace.source, beam_size=1, interventions=(Unscaled(),))
        shares, curves = zip(*pruning_curve(double, trace, greedy, prune(scores, 24)), strict=True)
    curve = curves[-1]
    assert list(shares) == sorted(shares)
    assert shares[-1] == 1
    assert curve.counts.tolist() == list(range(25))
    assert curve.same[0] == 1, "without pruning the greedy translation is itself"
    for k in (0, 1, 7, 24):
        changed = double.rerun(trace, (Unscaled(), *prune(scores, k)))
        assert curve.log_probabilities[k] == pytest.approx(changed.log_probability, abs=1e-9)
        with short_texts(12):
            pruned = double.trace(trace.source, beam_size=1, interventions=(Unscaled(), *prune(scores, k)))
        assert curve.same[k] == (pruned.next_ids == greedy.next_ids)


@pytest.mark.parametrize("count", [0, MOST_STEPS, MOST_STEPS + 1, 3 * MOST_STEPS])
def test_a_long_list_of_heads_is_measured_at_some_numbers_of_them(double, traces, count):
    gates = [HeadGate(0.0, kind="cross", layer=0, head=1)] * count
    with short_texts():  # it is not asked what is written
        *_, (_, curve) = pruning_curve(double, traces[0], traces[0], gates)
    assert len(curve.counts) == min(count, MOST_STEPS) + 1
    assert (curve.counts[0], curve.counts[-1]) == (0, count)
    assert np.isfinite(curve.log_probabilities).all()
    assert curve.log_probabilities[1:] == pytest.approx(curve.log_probabilities[-1])
