"""A forced prefix stays, and what follows is the model's own continuation."""

from dataclasses import replace

import pytest
import torch

from model.checkpoints.translator import Translator
from model.interventions import HeadGate, PermutedAttention
from model.network.config import BOS, EOS, UNK
from tests.model.tiny import random_checkpoint

SOURCE = "Two dogs play."


@pytest.fixture(scope="module")
def double(tiny_config, tokenizer) -> Translator:
    return random_checkpoint(replace(tiny_config, max_len=24), tokenizer, torch.float64)


@pytest.mark.parametrize("interventions", [(), (HeadGate(0.0, head=1),), (PermutedAttention(3),)])
def test_a_prefix_of_the_greedy_translation_continues_to_that_translation(double, interventions):
    own = double.trace(SOURCE, beam_size=1, interventions=interventions).next_ids
    whole = double.continue_from(SOURCE, [], 1, interventions)
    assert whole.tokens == own
    for length in (1, 2, len(own) // 2, len(own) - 1):
        found = double.continue_from(SOURCE, own[:length], 1, interventions)
        assert found.tokens == own
        assert found.log_probability == pytest.approx(whole.log_probability, abs=1e-3)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_any_prefix_stays_and_its_log_probability_counts(double, beam_size):
    prefix = double.tokenizer.encode("Ein Hund rennt")
    found = double.continue_from(SOURCE, prefix, beam_size)
    assert list(found.tokens[: len(prefix)]) == prefix
    assert len(found.tokens) > len(prefix)
    src, tgt = torch.tensor([[*double.tokenizer.encode(SOURCE), EOS]]), torch.tensor([[BOS, *found.tokens[:-1]]])
    logits = double.model(src, tgt)[0]
    total = sum(row[token].item() for row, token in zip(logits.log_softmax(-1), found.tokens, strict=True))
    assert found.log_probability == pytest.approx(total, abs=1e-3)


def test_without_a_prefix_it_is_translate(double):
    for beam_size in (1, 3):
        found = double.continue_from(SOURCE, [], beam_size)
        assert double.tokenizer.decode(list(found.tokens)) == double.translate([SOURCE], beam_size)[0]


@pytest.mark.parametrize(
    ("source", "prefix", "beam_size", "sentence"),
    [
        (" ", [5], 1, "source is empty"),
        ("dog " * 500, [5], 1, "source has 2,000 characters"),
        (SOURCE, [5, EOS], 1, "contains the token 3"),
        (SOURCE, [UNK], 1, "after which no translation can continue"),
        (SOURCE, [10**6], 1, "after which no translation can continue"),
        (SOURCE, [5] * 23, 1, "The prefix has 23 tokens"),
        (SOURCE, [5], 0, "beam_size must be at least 1"),
    ],
)
def test_an_impossible_prefix_is_refused_in_a_sentence(double, source, prefix, beam_size, sentence):
    with pytest.raises(ValueError, match=sentence):
        double.continue_from(source, prefix, beam_size)
