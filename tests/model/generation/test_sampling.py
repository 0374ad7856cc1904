"""Sampling keeps what it says, and draws what it keeps as often as it should."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from model.checkpoints.translator import Translator
from model.generation.sampling import (
    Sampling,
    draw,
    logits_at_attention_temperature,
    sample,
    sample_texts,
    sampling_distribution,
)
from model.generation.search import greedy
from model.interventions import AttentionTemperature
from model.network.config import BOS, EOS, PAD, UNK
from tests.model.strategies import few

logits = arrays(np.float32, (3, 20), elements=st.floats(-30, 30, width=32)).map(torch.tensor)


def ids_of(translator: Translator, text: str = "a dog and a cat") -> list[int]:
    return [*translator.tokenizer.encode(text), EOS]


@few
@given(logits, st.integers(1, 20), st.floats(0.1, 5))
def test_top_k_keeps_the_k_most_probable(values, k, temperature):
    plain, cut = (
        sampling_distribution(values, Sampling(temperature)),
        sampling_distribution(values, Sampling(temperature, top_k=k)),
    )
    for before, after in zip(plain, cut, strict=True):
        kept = after > 0
        assert kept.sum() == k
        assert before[kept].min() >= before[~kept].max() if k < 20 else True
        assert after.sum() == pytest.approx(1)


@few
@given(logits, st.floats(0.01, 0.999))
def test_top_p_keeps_the_fewest_tokens_that_have_p(values, p):
    plain, cut = sampling_distribution(values, Sampling()), sampling_distribution(values, Sampling(top_p=p))
    for before, after in zip(plain, cut, strict=True):
        kept = before[after > 0]
        assert kept.sum() >= p - 1e-9
        assert kept.sum() - kept.min() < p + 1e-9, "without its least probable token it would not have p"
        assert after.sum() == pytest.approx(1)
        np.testing.assert_allclose(after[after > 0], kept / kept.sum(), rtol=1e-9)


@few
@given(logits, st.floats(0.2, 5))
def test_temperature_divides_the_logits(values, temperature):
    expected = (values.double() / temperature).softmax(-1)
    np.testing.assert_allclose(sampling_distribution(values, Sampling(temperature)), expected, atol=1e-12)


@pytest.mark.parametrize("temperature", [1e-3, 1e-30, 1e30])
def test_extreme_temperatures_do_not_overflow(temperature):
    values = torch.tensor([[3.0, 1.0, -torch.inf, 2.9]])
    found = sampling_distribution(values, Sampling(temperature))
    assert torch.isfinite(found).all()
    assert found[0, 2] == 0
    assert found.sum() == pytest.approx(1)
    assert found[0].argmax() == 0


def test_temperature_towards_zero_is_greedy(translator: Translator):
    source = ids_of(translator)
    (expected,) = greedy(translator.model, [source])
    steps = list(sample(translator.model, source, Sampling(1e-4), seed=3, n=2))
    for row in range(2):
        drawn = [int(step.tokens[row]) for step in steps if step.alive[row]]
        assert tuple(drawn) == expected.tokens


def test_tokens_come_as_often_as_they_are_probable():
    probabilities = torch.tensor([0.5, 0.3, 0.15, 0.05, 0.0], dtype=torch.float64)
    n = 20_000
    drawn = draw(probabilities.expand(n, -1), torch.Generator().manual_seed(1))
    frequencies = torch.bincount(drawn, minlength=5) / n
    # Five standard deviations of a binomial share.
    bound = 5 * (probabilities * (1 - probabilities) / n).sqrt()
    assert ((frequencies - probabilities).abs() <= bound).all()


def test_every_step_draws_from_the_second_of_two_distributions_as_the_seed_says(translator: Translator):
    first, again, other = (
        list(sample(translator.model, ids_of(translator), Sampling(1.5, 10, 0.9), seed, n=3)) for seed in (0, 0, 1)
    )
    for step in first:
        np.testing.assert_allclose(step.before.sum(-1), 1)
        np.testing.assert_allclose(step.after.sum(-1), 1)
        assert not step.after[:, [PAD, UNK, BOS]].any()
        assert ((step.after > 0).sum(-1) <= 10).all()
        assert (step.after[np.arange(3), step.tokens] > 0).all()
    drawn, same, else_ = ([tuple(step.tokens) for step in steps] for steps in (first, again, other))
    assert drawn == same != else_


@pytest.mark.parametrize("bad", [{"temperature": 0.0}, {"top_k": -1}, {"top_p": 0.0}, {"top_p": 1.1}])
def test_impossible_settings_are_refused(bad):
    with pytest.raises(ValueError, match="temperature must be above 0"):
        Sampling(**bad)


def test_temperature_inside_is_the_intervention_in_every_attention(translator: Translator):
    trace = translator.trace("a dog", "Ein Hund")
    expected = translator.trace("a dog", "Ein Hund", interventions=(AttentionTemperature(2.0),))
    np.testing.assert_array_equal(logits_at_attention_temperature(translator.model, trace, 2.0), expected.logits)
    assert np.array_equal(logits_at_attention_temperature(translator.model, expected, 1.0), trace.logits)


def test_what_a_figure_shows_of_a_draw_is_the_draw(translator: Translator):
    source, sampling = ids_of(translator), Sampling(1.3, 50, 0.8)
    steps = list(sample(translator.model, source, sampling, 4, 3))
    for row, drawn in enumerate(sample_texts(translator.model, source, sampling, 4, 3)):
        alive = [step for step in steps if step.alive[row]]
        assert drawn.tokens == tuple(int(step.tokens[row]) for step in alive)
        for step, look in zip(alive, drawn.draws, strict=True):
            for shown, whole in ((look.before, step.before[row]), (look.after, step.after[row])):
                assert np.array_equal(shown[:-1], whole[list(look.ids)])
                assert shown.sum() == pytest.approx(whole.sum())
            assert look.kept == (step.after[row] > 0).sum()
            assert look.ids[look.chosen] == step.tokens[row]
            assert look.kept_before == pytest.approx(step.before[row][step.after[row] > 0].sum())
        expected = sum(np.log(step.before[row, step.tokens[row]]) for step in alive)
        assert drawn.log_probability == pytest.approx(expected)


@pytest.mark.parametrize("sampling", [Sampling(top_k=3), Sampling(top_p=0.01)])
def test_tokens_that_are_cut_have_a_probability_of_exactly_zero_together(translator: Translator, sampling: Sampling):
    for drawn in sample_texts(translator.model, ids_of(translator), sampling, 0, 2):
        for look in drawn.draws:
            assert look.after[-1] == 0
            assert (look.after > 0).sum() == look.kept <= 3
            assert look.before[-1] > 0
