"""The learning rate is the paper's equation 3, and reading a log back states where it follows it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.checkpoints.card import read_card
from model.checkpoints.store import checkpoint_folder
from model.training.schedule import cooldown, fit_schedule, noam
from tests.model.strategies import few


@few
@given(st.integers(1, 100_000), st.integers(1, 1024), st.integers(1, 10_000), st.floats(0.1, 5))
def test_the_learning_rate_is_equation_3(step, d_model, warmup, factor):
    expected = factor / np.sqrt(d_model) * min(1 / np.sqrt(step), step / warmup**1.5)
    assert noam(step, d_model, warmup, factor) == pytest.approx(expected, rel=1e-12)


@few
@given(st.integers(1, 500), st.integers(1, 500))
def test_the_cooldown_falls_in_a_line_from_one_to_zero_at_the_last_step(steps, length):
    factors = [cooldown(step, steps, length) for step in range(1, steps + 1)]
    assert factors[-1] == 0
    assert all(factor == 1 for factor in factors[: max(steps - length, 0)])
    assert np.allclose(np.diff(factors[max(steps - length, 1) - 1 :]), -1 / length)
    assert cooldown(steps, steps, 0) == 1


@pytest.mark.parametrize(("step", "warmup"), [(0, 4000), (1, -1), (-1, 5)])
def test_impossible_steps_are_refused(step, warmup):
    with pytest.raises(ValueError, match="step must be at least 1"):
        noam(step, 512, warmup)


@few
@given(st.integers(1, 5000), st.integers(1, 1024))
def test_without_warm_up_the_rate_only_decays(step, d_model):
    assert noam(step, d_model, 0) == pytest.approx((d_model * step) ** -0.5)


@pytest.mark.parametrize(("warmup", "factor"), [(1, 1.0), (300, 0.7), (4000, 2.0)])
def test_without_a_rise_the_rate_is_at_the_same_peak_and_decays_as_with_it(warmup: int, factor: float) -> None:
    with_rise, without = ([noam(s, 64, warmup, factor, rise) for s in range(1, 3 * warmup)] for rise in (True, False))
    assert max(with_rise) == pytest.approx(max(without), rel=1e-12)
    assert without[:warmup] == pytest.approx([noam(warmup, 64, warmup, factor)] * len(without[:warmup]), rel=1e-12)
    assert without[warmup:] == with_rise[warmup:]


@given(st.integers(50, 5000), st.floats(0.1, 10), st.sampled_from([16, 128, 512]))
def test_warm_up_and_factor_are_read_back_from_six_digits(warmup: int, factor: float, d_model: int) -> None:
    steps = np.arange(1, 11) * max(warmup // 3, 1)
    rates = np.array([float(f"{noam(int(s), d_model, warmup, factor):.6g}") for s in steps])
    found = fit_schedule(steps, rates, d_model)
    assert found is not None
    assert found.warmup == pytest.approx(warmup, rel=1e-4)
    assert found.factor == pytest.approx(factor, rel=1e-4)
    # The error is that of the warm-up rounded to a whole number of steps.
    assert found.error < 1e-4 + 1 / warmup
    assert found.lowered_from is None


def test_a_cooldown_is_told_from_the_equation() -> None:
    steps = np.arange(100, 2001, 100)
    rates = np.array([noam(int(s), 64, 450) * cooldown(int(s), 2000, 600) for s in steps])
    found = fit_schedule(steps[:-1], rates[:-1], 64)
    assert found is not None
    assert (round(found.warmup), found.lowered_from) == (450, 1500)


def test_a_second_run_is_reported_and_not_fitted() -> None:
    steps = np.arange(100, 2001, 100)
    first = np.array([noam(int(s), 64, 450) * cooldown(int(s), 2000, 600) for s in steps])
    second = np.array([noam(int(s), 64, 300, 0.6) for s in steps])
    both = fit_schedule(np.append(steps, steps + 2000), np.append(first, second), 64)
    alone = fit_schedule(steps, first, 64)
    assert both is not None
    assert alone is not None
    assert (both.restarted_at, alone.restarted_at) == (2100, None)
    assert (both.warmup, both.factor, both.lowered_from) == (alone.warmup, alone.factor, alone.lowered_from)


@pytest.mark.parametrize("warmup", [1, 10**6])
def test_a_log_without_rise_or_without_fall_gives_no_schedule(warmup: int) -> None:
    steps = np.arange(100.0, 1100, 100)
    rates = np.array([noam(int(s), 64, warmup) for s in steps])
    assert fit_schedule(steps, rates, 64) is None
    assert fit_schedule(steps, np.full(10, np.nan), 64) is None
    assert fit_schedule(steps[:0], rates[:0], 64) is None


@pytest.mark.parametrize("n_warming", [1, 2, 3])
def test_a_low_rate_before_a_rise_belongs_to_the_next_run(n_warming: int) -> None:
    """A run stopped on the curve of equation 3; the next one logged `n_warming` rows of its warm-up."""
    steps = np.arange(100, 2001, 100)
    first = np.array([noam(int(s), 64, 450) for s in steps])
    second = np.array([noam(int(s), 64, n_warming * 100 + 50, 0.5) for s in steps])
    found = fit_schedule(np.append(steps, steps + 2000), np.append(first, second), 64)
    assert found is not None
    assert (found.n_followed, found.lowered_from, found.restarted_at, found.raised_at) == (20, None, 2100, ())


@pytest.mark.parametrize(
    ("name", "rows", "n_followed", "lowered_from", "restarted_at", "raised_at"),
    [("en-de", 70, 10, 5500, 7700, (9120, 10890, 12200, 13000)), ("multi30k-tiny", 41, 29, None, 7450, ())],
)
def test_the_shipped_logs_are_read_as_their_cards_tell_them(
    name, rows, n_followed, lowered_from, restarted_at, raised_at
):
    log = read_card(checkpoint_folder() / name).log
    steps, rates = (np.array([row[column] for row in log]) for column in ("step", "learning_rate"))
    found = fit_schedule(steps, rates, {"en-de": 256, "multi30k-tiny": 128}[name])
    assert found is not None
    assert (len(log), found.n_followed) == (rows, n_followed)
    assert (found.lowered_from, found.restarted_at, found.raised_at) == (lowered_from, restarted_at, raised_at)
    assert found.warmup == pytest.approx(2000, rel=1e-4)
    assert found.factor == pytest.approx(1, rel=1e-4)
    assert found.error < 1e-4
