"""Measurements: what is timed, how often, in which order, and what is made of it. No test looks at a real time."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
import torch

from model.background import lstm, stopwatch
from model.background.lstm import layer_contenders, layer_parameters, seeded_lstm
from model.background.stopwatch import FITTED, Sample, exponents, fit_power, growth, measure, medians
from model.network.encoder_decoder import Transformer

LENGTHS = (2, 4, 8)


class Clock:
    """Stands still unless something works."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def working(clock: Clock, power: int) -> stopwatch.Contender:
    """Takes length ** power seconds of the clock."""

    def prepare(length: int) -> Callable[[], None]:
        def call() -> None:
            clock.now += length**power

        return call

    return prepare


def test_each_contender_is_timed_at_each_length_once_a_round() -> None:
    clock = Clock()
    samples = list(measure({"a": working(clock, 1), "b": working(clock, 2)}, "cpu", LENGTHS, 3, clock))
    assert len(samples) == 2 * 3 * 3
    for start in range(0, len(samples), 6):
        found = {(sample.contender, sample.length) for sample in samples[start : start + 6]}
        assert found == set(itertools.product("ab", LENGTHS))
    assert all(sample.seconds == sample.length ** (1 if sample.contender == "a" else 2) for sample in samples)


def test_no_contender_and_no_length_is_always_first() -> None:
    clock = Clock()
    samples = list(measure({"a": working(clock, 0), "b": working(clock, 0)}, "cpu", LENGTHS, 3, clock))
    firsts = [(samples[i].contender, samples[i].length) for i in range(0, 18, 6)]
    assert firsts == [("a", 2), ("b", 4), ("a", 8)]


def test_a_measurement_ends_when_its_time_is_up() -> None:
    clock = Clock()
    samples = list(measure({"a": working(clock, 3)}, "cpu", (2, 4), 1000, clock))
    rounds = len(samples) // 2
    assert rounds == stopwatch.FEWEST_ROUNDS
    assert medians(samples, "cpu").rounds == rounds


def test_a_caller_that_stops_leaves_gradients_on() -> None:
    clock, seen = Clock(), []

    def prepare(_length: int) -> Callable[[], None]:
        return lambda: seen.append(torch.is_inference_mode_enabled())

    samples = measure({"a": prepare}, "cpu", LENGTHS, 3, clock)
    next(samples)
    assert not torch.is_inference_mode_enabled()
    samples.close()
    assert not torch.is_inference_mode_enabled()
    assert seen
    assert all(seen)


def test_medians_ignore_a_round_that_was_disturbed() -> None:
    times = {2: (1.0, 1.0, 50.0), 4: (3.0, 90.0, 2.0)}
    samples = [Sample("a", length, times[length][turn]) for turn in range(3) for length in (4, 2)]
    found = medians(samples, "cpu")
    assert found.lengths == (2, 4)
    assert list(found.seconds["a"]) == [1.0, 3.0]
    assert found.samples["a"].tolist() == [[1.0, 1.0, 50.0], [3.0, 90.0, 2.0]]
    assert "CPU" in found.conditions


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
def test_exponents_give_a_power_back(power: float) -> None:
    seconds = 3e-4 * np.array(stopwatch.LENGTHS, dtype=float) ** power
    found = exponents(stopwatch.LENGTHS, seconds)
    assert np.isnan(found[0])
    assert found[1:] == pytest.approx(power)
    assert growth(stopwatch.LENGTHS, seconds) == pytest.approx(power)


def test_a_power_law_is_fitted_to_the_longest_lengths_alone() -> None:
    seconds = 3e-4 * np.array(stopwatch.LENGTHS, dtype=float) ** 1.5
    seconds[:-FITTED] = 1.0
    assert fit_power(stopwatch.LENGTHS, seconds) == pytest.approx((3e-4, 1.5))
    seconds[-FITTED:] *= np.exp([0.1, -0.2, 0.1])
    factor, power = fit_power(stopwatch.LENGTHS, seconds)
    assert power == pytest.approx(1.5), "the disturbance is orthogonal to the line"
    assert factor == pytest.approx(3e-4)


@pytest.mark.parametrize("batch", [1, 3])
def test_attention_is_the_models_own_layer_and_an_lstm_reads_and_writes_the_same_shapes(
    tiny_model: Transformer, batch: int
) -> None:
    contenders, called = layer_contenders(tiny_model, 1, batch), []
    assert list(contenders) == [lstm.ATTENTION, lstm.LSTM]
    handle = tiny_model.encoder.layers[1].self_attn.register_forward_hook(lambda *_: called.append(1))
    for prepare in contenders.values():
        assert prepare(200)().shape == (batch, 200, tiny_model.config.d_model)
    handle.remove()
    assert called


def test_parameters_are_counted_on_the_layers_themselves(tiny_model: Transformer) -> None:
    d = tiny_model.config.d_model
    sizes = layer_parameters(tiny_model, 0)
    assert sizes == {lstm.ATTENTION: 4 * (d * d + d), lstm.LSTM: 8 * (d * d + d)}


def test_the_lstm_is_seeded_and_leaves_the_process_random_numbers_alone() -> None:
    before = torch.random.get_rng_state()
    one, two = seeded_lstm(8), seeded_lstm(8)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert [parameter.std().item() for parameter in one.parameters()] == pytest.approx([8**-0.5] * 4, rel=0.4)
    assert torch.equal(before, torch.random.get_rng_state())
