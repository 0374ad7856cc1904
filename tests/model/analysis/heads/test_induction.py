"""The induction score: 1 for a head that attends to what followed the same token, 0 for one that does not."""

import numpy as np
import pytest
import torch

from model.analysis.heads.induction import (
    CHANCE,
    SEQUENCES,
    induction_scores,
    measure_repetition,
    repeat_random_tokens,
)
from model.checkpoints.language_model import LanguageModel
from model.checkpoints.masked_model import MaskedModel
from model.checkpoints.tokenizer import train_tokenizer
from model.hooks import editing
from tests.model.checkpoints.test_language_model import opened
from tests.model.tiny import SENTENCES


def language_model_of(masked: bool) -> LanguageModel | MaskedModel:
    """A random one, masked or not, of the sizes in MODERN."""
    tokenizer = train_tokenizer((source for source, _ in SENTENCES), 312, masked)
    return opened(tokenizer, n_encoder_layers=2 * masked, n_decoder_layers=2 * (not masked))


@pytest.mark.parametrize("masked", [False, True])
def test_a_constructed_induction_head_scores_1_and_a_head_on_its_own_token_0(masked):
    """The patterns are made from the token ids that the model is given, whatever their lengths."""
    model, read = language_model_of(masked), []
    model.model.register_forward_pre_hook(lambda _module, inputs: read.append(inputs[0][0].tolist()))

    def constructed(pattern: torch.Tensor) -> torch.Tensor:
        made, ids = torch.zeros_like(pattern), read[-1]
        for row, token in enumerate(ids):
            before = [key for key in range(row) if ids[key] == token]
            if masked and token == model.tokenizer.mask:
                key = ids.index(ids[row - 1]) + 1  # what came after the token before, the first time
            else:
                key = before[-1] + 1 if before else 0
            made[:, 0, row, key] = 1
            made[:, 1:, row, row] = 1
        return made

    stack = "encoder" if masked else "decoder"
    with editing(model.model, {f"{stack}.layers.1.self_attn.pattern": constructed}):
        found = induction_scores(model)
    assert found.keys() == {(f"{stack}_self", 0), (f"{stack}_self", 1)}
    assert found[f"{stack}_self", 1].shape == (4, SEQUENCES)
    assert found[f"{stack}_self", 1].mean(axis=1).tolist() == [1, 0, 0, 0]


def test_equal_weights_score_what_is_said():
    model = language_model_of(False)
    path = "decoder.layers.0.self_attn.pattern"
    equal = {path: lambda pattern: torch.ones_like(pattern).tril() / torch.arange(1, pattern.shape[-1] + 1)[:, None]}
    with editing(model.model, equal):
        assert induction_scores(model)["decoder_self", 0] == pytest.approx(CHANCE, rel=1e-5)


def test_the_same_sequences_are_drawn_each_time():
    model = language_model_of(False)
    first, second = induction_scores(model), induction_scores(model)
    for place, scores in first.items():
        np.testing.assert_array_equal(scores, second[place])


def test_a_translator_has_no_induction_score(translator):
    assert induction_scores(translator) == {}


def test_who_copies_what_followed_has_no_loss_in_the_second_half_and_a_silent_head_costs_nothing():
    model = language_model_of(False)

    def copies(logits: torch.Tensor) -> torch.Tensor:
        for text, ids in enumerate(read[-1]):
            for row, token in enumerate(ids):
                before = [key for key in range(row) if ids[key] == token]
                if before:
                    logits[text, row] = -100
                    logits[text, row, ids[before[-1] + 1]] = 100
        return logits

    read = []
    model.model.register_forward_pre_hook(lambda _module, inputs: read.append(inputs[0].tolist()))
    silent = {"decoder.layers.0.self_attn.z": lambda z: z * torch.tensor([0.0, 1, 1, 1])[:, None, None]}
    with editing(model.model, silent):
        measured = measure_repetition(model)
        with editing(model.model, {"logits": copies}):
            copied = measure_repetition(model)
    assert measured.heads == tuple((layer, head) for layer in (0, 1) for head in range(4))
    assert measured.without[0] == pytest.approx(measured.second, abs=1e-5)
    assert (abs(measured.without[1:] - measured.second) > 1e-4).all()
    assert copied.second == pytest.approx(0, abs=1e-6)
    assert copied.first == pytest.approx(measured.first)


def test_the_tokens_of_both_halves_are_the_same_and_none_is_twice_in_a_half():
    ids = repeat_random_tokens(language_model_of(False).tokenizer, 3, 7, 0)
    assert ids.shape == (3, 15)
    assert torch.equal(ids[:, 1:8], ids[:, 8:])
    assert all(len(set(half)) == 7 for half in ids[:, 1:8].tolist())
