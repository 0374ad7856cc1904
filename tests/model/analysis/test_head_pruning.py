"""The curve of heads switched off together is what a run for each number of heads gives."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from model.analysis.head_importance import head_scores, prune
from model.analysis.head_pruning import ROWS, encode_pair, pruning_curve
from model.checkpoints.translator import Translator
from model.interventions import HeadGate, Unscaled
from model.network.config import EOS
from tests.model.strategies import KINDS
from tests.model.tiny import SENTENCES, random_model


@pytest.fixture(scope="module")
def double(tiny_config, tokenizer) -> Translator:
    return Translator("tiny", "0" * 64, random_model(replace(tiny_config, max_len=48), dtype=torch.float64), tokenizer)


@pytest.mark.parametrize("mode", ["zero", "mean"])
def test_each_point_is_a_run_without_these_heads(double, mode):
    trace = double.trace(*SENTENCES[0], interventions=(Unscaled(),))
    pair = (trace.src_ids, trace.next_ids)
    scores = [list(head_scores(double.model, [pair], kind, mode))[-1] for kind in KINDS]
    greedy = double.trace(trace.source, beam_size=1, interventions=(Unscaled(),))
    gates = prune(scores, 24)
    steps = list(pruning_curve(double.model, pair, greedy.next_ids, gates, (Unscaled(),)))
    assert [step.done for step in steps] == sorted(step.done for step in steps)
    curve = steps[-1]
    assert curve.done == 1
    assert len(curve.same) == 25
    assert curve.same[0] == 1, "without pruning the greedy translation is itself"
    for k in (0, 1, 7, 24):
        changed = double.trace(trace.source, trace.translation, interventions=(Unscaled(), *prune(scores, k)))
        right = np.log(changed.probabilities[range(len(trace.next_ids)), list(trace.next_ids)]).sum()
        assert curve.log_probabilities[k] == pytest.approx(right, abs=1e-9)
        pruned = double.trace(trace.source, beam_size=1, interventions=(Unscaled(), *prune(scores, k)))
        assert curve.same[k] == (pruned.next_ids == greedy.next_ids)


def test_a_last_pass_of_one_run_is_a_pass_too(double):
    trace = double.trace(*SENTENCES[0])
    gates = [HeadGate(0.0, kind="cross", layer=0, head=1)] * ROWS
    *_, curve = pruning_curve(double.model, (trace.src_ids, trace.next_ids), trace.next_ids, gates)
    assert curve.done == 1
    assert len(curve.same) == ROWS + 1
    assert curve.log_probabilities[1] == pytest.approx(curve.log_probabilities[-1])


def test_a_pair_ends_as_a_traces_does_and_fits_the_model(double):
    trace = double.trace(*SENTENCES[0])
    assert encode_pair(double, trace.source, trace.translation) == (trace.src_ids, trace.next_ids)
    src, tgt = encode_pair(double, "dog " * 500, "")
    assert len(src) == double.token_limit
    assert tgt == (EOS,)
