"""The fast model computes what the readable one computes, and is not used while anything observes the model."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.generation.fast_steps import INITIAL_CAPACITY, FastTransformer
from model.generation.search import beam_search, greedy
from model.hooks import observed
from model.interventions import AttentionTemperature, applied
from model.network.batch import pad_batch
from model.network.config import BOS, EOS, TransformerConfig
from model.network.encoder_decoder import Transformer
from model.network.masks import padding_mask
from tests.model.strategies import configs, few
from tests.model.tiny import random_model

SOURCES = st.lists(
    st.lists(st.integers(4, 359), max_size=6).map(lambda ids: [*ids, EOS]), min_size=1, max_size=4
)  # of unequal length, so that some have padding


def readable(model: Transformer, prefixes: torch.Tensor, sources: list[list[int]], copies: int) -> torch.Tensor:
    """Logits (row, position, vocabulary), every position from its whole prefix."""
    src = pad_batch(sources).repeat_interleave(copies, 0)
    return model(src, prefixes)


@few
@given(configs().filter(lambda config: config.classic), SOURCES, st.sampled_from((1, 3)), st.integers(0, 99))
def test_fast_steps_are_the_models_rows_also_when_beams_change_places_and_sentences_leave(
    config, sources, copies, seed
):
    model = random_model(config, dtype=torch.float64)
    numbers = torch.Generator().manual_seed(seed)
    src = pad_batch(sources)
    with torch.inference_mode():
        steps = FastTransformer(model).start(src, padding_mask(src), copies)
        prefixes = torch.full((len(sources) * copies, 1), BOS)
        alive = list(range(len(sources)))
        for number in range(5):
            expected = readable(model, prefixes, [sources[i] for i in alive], copies)[:, -1]
            torch.testing.assert_close(steps(prefixes[:, -1]), expected, atol=1e-10, rtol=0)
            left = alive[:-1] if number == 2 and len(alive) > 1 else alive
            chosen = torch.randint(copies, (len(left), copies), generator=numbers)
            rows = (chosen + copies * torch.arange(len(left))[:, None]).flatten()
            words = torch.randint(4, config.vocab_size, (len(rows), 1), generator=numbers)
            steps.reorder(rows)
            prefixes, alive = torch.cat([prefixes[rows], words], dim=1), left


def test_single_precision_agrees_beyond_the_initial_capacity(tiny_model: Transformer) -> None:
    length = INITIAL_CAPACITY + 9
    tokens = torch.randint(4, 300, (2, length), generator=torch.Generator().manual_seed(0))
    src = pad_batch([[5, 6, 7, EOS], [8, EOS]])
    with torch.inference_mode():
        steps = FastTransformer(tiny_model).start(src, padding_mask(src), 1)
        found = torch.stack([steps(column) for column in tokens.T], dim=1)
        torch.testing.assert_close(found, tiny_model(src, tokens), atol=5e-5, rtol=0)


def test_whoever_watches_sees_every_step_and_an_intervention_works_in_it(tiny_model: Transformer) -> None:
    assert not observed(tiny_model.modules())
    seen = []
    handle = tiny_model.decoder.layers[0].feed_forward.w_1.register_forward_hook(lambda *_: seen.append(1))
    try:
        assert observed(tiny_model.modules())
        steps = len(greedy(tiny_model, [[5, 6, EOS]], fast=FastTransformer(tiny_model))[0].tokens)
    finally:
        handle.remove()
    assert len(seen) == steps
    with applied(tiny_model, [AttentionTemperature(0.01)]):
        assert observed(tiny_model.modules())
        changed = greedy(tiny_model, [[5, 6, EOS]], fast=FastTransformer(tiny_model))
    assert changed[0].log_probability != greedy(tiny_model, [[5, 6, EOS]])[0].log_probability


@few
@given(
    configs().filter(lambda config: config.classic), SOURCES, st.sampled_from(("encoder_self", "decoder_self", "cross"))
)
def test_a_changed_layer_is_decoded_as_without_the_fast_form(config: TransformerConfig, sources, kind: str) -> None:
    model = random_model(replace(config, max_len=12), dtype=torch.float64)
    fast = FastTransformer(model)
    with applied(model, [AttentionTemperature(0.01, kind=kind, layer=0)]):
        assert observed(fast.encoder_modules) == (kind == "encoder_self")
        assert not observed(fast.other_modules), "the fast form takes part"
        ours = [greedy(model, sources, fast=fast), *beam_search(model, sources, 3, fast=fast)]
        theirs = [greedy(model, sources), *beam_search(model, sources, 3)]
    for found, expected in zip(ours, theirs, strict=True):
        assert [h.tokens for h in found] == [h.tokens for h in expected]
        assert [h.score for h in found] == pytest.approx([h.score for h in expected], abs=1e-9)
