"""The run in several number formats: measured against single precision, step by step."""

from dataclasses import replace

import numpy as np
import torch

from model.analysis.inside.number_formats import FP16_LIMIT, ROUNDING, largest_score, run_in_formats
from model.analysis.runs.gradients import stream_steps
from tests.model.tiny import random_model


def test_coarser_formats_are_further_from_single_precision(translator, trace) -> None:
    runs = run_in_formats(translator, trace)
    for stack in trace.streams:
        fp32, bf16, fp16 = (run.differences[stack] for run in runs.values())
        assert len(fp32) == len(stream_steps(trace, stack))
        assert not fp32.any()
        assert np.all(bf16[1:] > fp16[1:])
        assert np.all(fp16[1:] > 0)
    assert np.allclose(runs["fp32"].log_probabilities, trace.target_log_probabilities, atol=1e-4)
    assert np.abs(runs["bf16"].log_probabilities - trace.target_log_probabilities).max() < 1
    assert runs["fp32"].text == translator.translate([trace.source], beam_size=1)[0]


def test_the_first_difference_is_the_rounding_of_the_input(translator, trace) -> None:
    for name, run in run_in_formats(translator, trace).items():
        # Two numbers are rounded, and their sum.
        assert all(steps[0] <= 3 * ROUNDING[name] for steps in run.differences.values())


def test_weights_that_are_stored_in_half_precision_are_exact_there(translator, trace) -> None:
    assert run_in_formats(translator, trace)["fp16"].exact_weights
    other = replace(translator, model=random_model(translator.config))
    found = run_in_formats(other, other.trace("A dog runs."))
    assert [run.exact_weights for run in found.values()] == [True, False, False]


def test_an_overflow_is_told_as_one(translator) -> None:
    model = random_model(translator.config)
    with torch.no_grad():
        model.decoder.layers[0].feed_forward.w_2.bias.fill_(2 * FP16_LIMIT)
    other = replace(translator, model=model)
    run = run_in_formats(other, other.trace("A dog runs.", "Ein Hund."))["fp16"]
    assert run.text is None
    assert np.isnan(run.log_probabilities).all()
    # After self-attention and cross-attention of layer 0, all is finite.
    assert np.isfinite(run.differences["decoder"]).tolist()[:4] == [True, True, True, False]
    assert np.isfinite(run.differences["encoder"]).all()


def test_the_largest_score_is_that_of_the_head_that_is_named(trace) -> None:
    found = largest_score(trace)
    q, k = (getattr(trace.attention(found.kind, found.layer), name)[found.head] for name in "qk")
    assert np.isclose(np.abs(q @ k.T).max(), found.score)
    every = [trace.attention(kind.name, layer).scores for kind in trace.kinds for layer in kind.layers]
    assert found.score == max(np.abs(scores).max() for scores in every)
