"""Greedy decoding, beam search and sampling of a language model start from a prompt and write what it predicts."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.checkpoints.language_model import LanguageModel
from model.generation.beam_tree import beam_tree, search_again
from model.generation.sampling import Sampling, sample, sample_again, sample_texts
from model.generation.search import beam_search, greedy
from model.generation.steps import Steps, length_limits
from model.interventions import HeadGate, MaskEdit
from model.network.config import BOS, EOS
from model.trace import probabilities
from tests.model.checkpoints.test_language_model import MODERN, TEXT
from tests.model.network.test_families import network, parts
from tests.model.strategies import few
from tests.model.tiny import random_checkpoint

prompts = st.lists(st.integers(4, 59), max_size=6)


@pytest.fixture(scope="module")
def double(tokenizer) -> LanguageModel:
    """In double precision, so that rounding breaks no tie."""
    return random_checkpoint(replace(MODERN, vocab_size=len(tokenizer)), tokenizer, torch.float64)


@few
@given(parts(), prompts)
@torch.inference_mode()
def test_greedy_is_the_most_probable_token_each_time_with_and_without_the_cache(changes, prompt):
    model, written = network(**changes, max_len=16), []
    while len(written) < 16 - len(prompt) and EOS not in written:
        written.append(int(model(torch.tensor([[BOS, *prompt, *written]]))[0, -1, EOS:].argmax()) + EOS)
    for use_cache in (True, False):
        (found,) = greedy(model, [prompt], use_cache)
        assert found.tokens == tuple(written)


@few
@given(parts(), prompts, st.integers(1, 4))
def test_the_tree_finds_what_the_plain_search_finds_and_a_beam_of_one_is_greedy(changes, prompt, beam_size):
    model = network(**changes, max_len=16)
    (expected,) = beam_search(model, [prompt], beam_size, 0.6)
    for use_cache in (True, False):
        tree = beam_tree(model, prompt, beam_size, use_cache=use_cache)
        found = [tree.hypothesis(tree.ends[place], 0.6) for place in tree.ranking(0.6)[:beam_size]]
        assert [h.tokens for h in found] == [h.tokens for h in expected]
        if beam_size == 1:
            assert found[0].tokens == greedy(model, [prompt])[0].tokens


def test_samples_are_drawn_from_the_distribution_of_a_teacher_forced_run(double):
    trace, sampling = double.trace(TEXT), Sampling(0.7, top_k=20)
    prompt = double.tokenizer.encode(TEXT)
    steps = [*sample(double.model, prompt, sampling, 5, 3, 6)]
    assert len(steps) == 6
    again = double.trace_ids(TEXT, (*trace.next_ids[:-1], *(int(step.tokens[0]) for step in steps), EOS))
    for place, step in enumerate(steps):
        np.testing.assert_allclose(step.before.sum(axis=1), 1)
        np.testing.assert_allclose(step.after.sum(axis=1), 1)
        assert ((step.after > 0).sum(axis=1) <= 20).all()
        expected = probabilities(again.logits[again.first_written + place])
        np.testing.assert_allclose(step.before[0], expected, atol=1e-6)
    texts = sample_texts(double.model, prompt, sampling, 5, 3, 6)
    assert [text.tokens for text in texts] == [
        text.tokens for text in sample_again(double.model, trace, sampling, 5, 3, 6)
    ]
    assert texts[0].log_probability == pytest.approx(
        again.target_log_probabilities[again.first_written :][: len(texts[0].tokens)].sum(), abs=1e-4
    )


@pytest.mark.parametrize(
    "changes", [(), (HeadGate(0.0, head=1),), (MaskEdit(forbid=((5, 1), (6, 0)), kind="decoder_self"),)]
)
def test_a_search_continues_as_the_run_does_with_its_changes_also_those_that_need_every_row(double, changes):
    trace = double.trace(TEXT, max_new_tokens=6, interventions=changes)
    tree = search_again(double.model, trace, 1, 6)
    tokens = tree.hypothesis(tree.ends[0], 0).tokens
    assert tokens == trace.next_ids[trace.first_written :][: len(tokens)]
    assert len(tokens) == 6 or tokens[-1] == EOS
    first, n = trace.first_written, len(tokens)
    pattern = trace.attention("decoder_self", 1).pattern
    np.testing.assert_allclose(tree.attention[0][1], pattern[:, first : first + n, : first + n], atol=1e-6)


def test_a_prompt_that_fills_the_model_leaves_one_token_to_predict(double):
    prompt = [5] * (double.config.max_len - 1)
    assert length_limits(double.model, [prompt]) == [1]
    assert len(beam_tree(double.model, prompt, 2).path(1)) == 1


def test_prompts_of_a_batch_are_equally_long(double):
    steps = Steps(double.model, [[7, 8], [9, 10]], copies=2)
    assert steps.prefixes.tolist() == [[BOS, 7, 8], [BOS, 7, 8], [BOS, 9, 10], [BOS, 9, 10]]
    assert steps.written.shape == (4, 0)
    with pytest.raises(ValueError, match="length"):
        Steps(double.model, [[7], [9, 10]])
