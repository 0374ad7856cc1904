"""Long runs: the weights that are computed where somebody looks are the run's own, and nothing is lost by pooling."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from model.analysis.long.long_run import (
    LongRun,
    allowed,
    bits_by_position,
    largest,
    long_run,
    open_row,
    open_window,
    square_size,
    weight_on_first,
    weights,
    why_no_long_run,
    with_positions,
)
from model.checkpoints.language_model import LanguageModel
from model.checkpoints.masked_model import MaskedModel
from model.checkpoints.tokenizer import train_tokenizer
from tests.model.checkpoints.test_language_model import MODERN
from tests.model.tiny import SENTENCES, random_checkpoint

TEXT = " ".join(source for source, _ in SENTENCES)
FAMILIES = ("language model", "masked language model", "sliding window", "no positions", "sinusoids")


def opened(family: str, **config: object) -> LanguageModel | MaskedModel:
    masked = family == "masked language model"
    chosen = replace(
        MODERN, vocab_size=312, max_len=512, n_encoder_layers=2 * masked, n_decoder_layers=2 * (not masked)
    )
    changes = {
        "sliding window": {"window": 5},
        "no positions": {"positions": "none"},
        "sinusoids": {"positions": "sinusoidal"},
    }
    tokenizer = train_tokenizer([source for source, _ in SENTENCES], 312, masked=masked)
    return random_checkpoint(replace(chosen, **(changes.get(family, {}) | config)), tokenizer)


@pytest.fixture(scope="module")
def run() -> LongRun:
    return long_run(opened("language model"), TEXT)


@pytest.mark.parametrize("family", FAMILIES)
def test_weights_are_those_of_the_whole_trace(family: str) -> None:
    checkpoint = opened(family)
    run, trace = long_run(checkpoint, TEXT), checkpoint.trace(TEXT)
    assert run.tokens.labels == next(iter(trace.streams.values())).tokens.labels
    for (kind, layer), attention in trace.attentions.items():
        found = weights(run, (kind, layer), slice(None), (0, len(run)))
        np.testing.assert_allclose(found, attention.pattern, atol=1e-4)
        seen = allowed(run, (kind, layer), (0, len(run)), (0, len(run)))
        np.testing.assert_array_equal(seen, attention.mask[0])
    if len(run.log_probabilities):
        expected = trace.target_log_probabilities[: len(run) - 1]
        np.testing.assert_allclose(run.log_probabilities, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("size", [1, 3, 8])
def test_each_cell_is_the_largest_of_its_square(family: str, size: int) -> None:
    run = long_run(opened(family), TEXT)
    place, rows, columns = (run.kinds[0].name, 1), (5, len(run) - 3), (2, len(run) - 1)
    whole = weights(run, place, slice(None), (0, len(run)))[:, slice(*rows), slice(*columns)]
    seen = allowed(run, place, (0, len(run)), (0, len(run)))[slice(*rows), slice(*columns)]
    expected, possible = whole, seen
    for axis in (-1, -2):
        starts = range(0, whole.shape[axis], size)
        expected = np.maximum.reduceat(expected, starts, axis=axis)
        possible = np.logical_or.reduceat(possible, starts, axis=axis)
    np.testing.assert_allclose(largest(run, place, slice(None), rows, columns, size), expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(allowed(run, place, rows, columns, size), possible)


def test_a_text_is_taken_in_parts_without_a_seam(run, monkeypatch) -> None:
    place, whole = ("decoder_self", 0), (0, len(run))
    at_once = largest(run, place, slice(None), whole, whole, 4)
    monkeypatch.setattr("model.analysis.long.long_run.CELLS_AT_ONCE", 1)
    np.testing.assert_allclose(largest(run, place, slice(None), whole, whole, 4), at_once, rtol=1e-4, atol=1e-6)


def test_beyond_its_positions_a_model_goes_on_with_the_same_weights() -> None:
    short, long = opened("language model", max_len=16), opened("language model")
    long.model.load_state_dict(short.model.state_dict())
    one, other = long_run(short, TEXT), long_run(long, TEXT)
    assert len(one) > one.positions == 16
    for place, q in one.q.items():
        np.testing.assert_allclose(q, other.q[place], rtol=1e-4, atol=1e-4)
    longer = with_positions(short.model, 100)
    assert longer.output.weight is short.model.output.weight
    assert with_positions(short.model, 16) is short.model
    assert short.config.max_len == 16


@pytest.mark.parametrize("family", FAMILIES)
def test_weight_on_the_first_token_is_the_mean_of_its_column(family: str, monkeypatch) -> None:
    run = long_run(opened(family), TEXT)
    monkeypatch.setattr("model.analysis.long.long_run.CELLS_AT_ONCE", 10 * len(run))
    found = weight_on_first(run)
    for layer in run.kinds[0].layers:
        whole = weights(run, (run.kinds[0].name, layer), slice(None), (0, len(run)))
        np.testing.assert_allclose(found[layer], whole[:, 1:, 0].mean(-1), rtol=1e-3, atol=1e-6)


def test_a_window_states_what_lies_outside_it() -> None:
    run = long_run(opened("masked language model"), TEXT)
    found = open_window(run, ("encoder_self", 0), 1, (4, 12))
    np.testing.assert_allclose(found.weights.sum(-1) + found.before + found.after, 1, rtol=1e-5)
    assert (found.before > 0).all()
    assert (found.after > 0).all()


@pytest.mark.parametrize("tau", [0.3, 1.0, 4.0])
def test_the_steps_of_a_row_lead_to_its_weights(run, tau: float) -> None:
    window, place = (6, 20), ("decoder_self", 1)
    row = open_row(run, place, 0, 15, window, tau)
    opened_window = open_window(run, place, 0, window, tau)
    np.testing.assert_allclose(row.weights, opened_window.weights[15 - 6], rtol=1e-3, atol=1e-6)
    share = row.outside / (row.outside + row.exponentials.sum())
    assert share == pytest.approx(opened_window.before[15 - 6] + opened_window.after[15 - 6], abs=1e-5)


def test_bits_by_position_have_the_mean_of_all_tokens(run) -> None:
    positions, bits = bits_by_position(run.log_probabilities, parts=len(run) - 1)
    np.testing.assert_allclose(bits, -run.log_probabilities / np.log(2))
    assert list(positions) == list(range(1, len(run)))


def test_no_more_cells_remain_than_were_asked_for() -> None:
    for length in (1, 95, 96, 97, 4095, 4096):
        size = square_size(length, 96)
        assert -(-length // size) <= 96


def test_models_that_it_cannot_read_say_why(translator) -> None:
    assert "trained on sentences" in why_no_long_run(translator)
    biased = opened("language model", positions="alibi")
    with pytest.raises(ValueError, match="adds a bias"):
        long_run(biased, TEXT)
    learned = opened("language model", positions="learned", max_len=20)
    assert len(long_run(learned, TEXT)) == 20
    with pytest.raises(ValueError, match="Type at least one word"):
        long_run(learned, " \n ")


def test_nothing_of_the_size_of_all_weights_is_made() -> None:
    """The fused kernel runs: the points of the scores are never reached."""
    checkpoint, reached = opened("language model"), []
    for layer in checkpoint.model.decoder.layers:
        layer.self_attn.scores.forward = lambda x: reached.append(x) or x
    long_run(checkpoint, TEXT)
    assert reached == []
    with torch.inference_mode():
        checkpoint.trace(TEXT)
    assert reached
