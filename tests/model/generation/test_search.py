"""Greedy and beam search: what the cache, the batch and the length penalty may and may not change."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.generation.search import Hypothesis, _decide, beam_search, greedy, length_penalty
from model.generation.steps import length_limits
from model.hooks import editing, recording
from model.network.config import BOS, EOS, PAD, UNK
from model.network.encoder_decoder import Transformer
from tests.model.strategies import configs, few
from tests.model.tiny import LONG, SENTENCES, random_model

sources = st.lists(
    st.lists(st.integers(4, 359), min_size=0, max_size=6).map(lambda ids: [*ids, EOS]), min_size=1, max_size=3
)


def short_model(config, seed: int = 0) -> Transformer:
    """In double precision, with 12 positions, so that searches end soon, by </s> or by the limit."""
    return random_model(replace(config, max_len=12), seed, torch.float64)


def ended_by_chance(model: Transformer):
    """A random model seldom writes </s>: here it may, so that sentences of a batch end at different steps."""

    def edit(logits: torch.Tensor) -> torch.Tensor:
        end = logits.amax(-1, keepdim=True) + logits[..., 7:8] - 0.5
        return torch.cat([logits[..., :EOS], end, logits[..., EOS + 1 :]], dim=-1)

    return editing(model, {"logits": edit})


def log_probabilities(model: Transformer, source: list[int], tokens: tuple[int, ...]) -> np.ndarray:
    """Of each token, over the whole vocabulary, from one teacher-forced run."""
    logits = model(torch.tensor([source]), torch.tensor([[BOS, *tokens[:-1]]]))[0]
    return logits.log_softmax(-1)[range(len(tokens)), list(tokens)].numpy()


def tokens_of(found: list[list[Hypothesis]]) -> list[list[tuple[int, ...]]]:
    return [[hypothesis.tokens for hypothesis in hypotheses] for hypotheses in found]


@few
@given(configs(), sources)
def test_8_the_cache_changes_no_token(config, batch):
    model = short_model(config)
    with ended_by_chance(model):
        assert [h.tokens for h in greedy(model, batch)] == [h.tokens for h in greedy(model, batch, use_cache=False)]
        assert tokens_of(beam_search(model, batch, 3)) == tokens_of(beam_search(model, batch, 3, use_cache=False))


@few
@given(configs(), sources)
def test_7_a_sentence_in_a_batch_gets_what_it_gets_alone(config, batch):
    model = short_model(config)
    with ended_by_chance(model):
        assert [h.tokens for h in greedy(model, batch)] == [greedy(model, [source])[0].tokens for source in batch]
        together = tokens_of(beam_search(model, batch, 3))
        assert together == [tokens_of(beam_search(model, [source], 3))[0] for source in batch]


@few
@given(configs(), sources)
def test_8_a_beam_of_one_is_greedy(config, batch):
    model = short_model(config)
    with ended_by_chance(model):
        one, other = greedy(model, batch), beam_search(model, batch, beam_size=1)
    assert [h.tokens for h in one] == [found[0].tokens for found in other]
    np.testing.assert_allclose([h.log_probability for h in one], [f[0].log_probability for f in other], atol=1e-4)


@few
@given(configs(), sources, st.floats(0, 1.5))
def test_scores_are_log_probabilities_of_a_teacher_forced_run_over_the_length_penalty(config, batch, alpha):
    model = short_model(config)
    with ended_by_chance(model):
        for source, found in zip(batch, beam_search(model, batch, 4, alpha), strict=True):
            assert len(found) == 4
            for hypothesis in found:
                expected = log_probabilities(model, source, hypothesis.tokens).sum()
                assert abs(hypothesis.log_probability - expected) < 1e-4
                penalty = ((5 + len(hypothesis.tokens)) / 6) ** alpha
                assert abs(hypothesis.score - hypothesis.log_probability / penalty) < 1e-9
            assert sorted(found, key=lambda h: -h.score) == found
            assert len(set(tokens_of([found])[0])) == 4, "no translation twice"


@few
@given(configs(), sources)
def test_a_translation_ends_with_its_only_end_token_or_at_the_limit(config, batch):
    model = short_model(config)
    with ended_by_chance(model):
        everything = [*zip(batch, ([h] for h in greedy(model, batch)), strict=True)]
        everything += zip(batch, beam_search(model, batch, 3), strict=True)
    for source, found in everything:
        (limit,) = length_limits(model, [source])
        for hypothesis in found:
            assert EOS not in hypothesis.tokens[:-1]
            assert not {PAD, UNK, BOS} & set(hypothesis.tokens)
            assert hypothesis.tokens[-1] == EOS or len(hypothesis.tokens) == limit
            assert len(hypothesis.tokens) <= limit


@few
@given(configs(), sources.map(lambda batch: batch[0]), st.integers(2, 4), st.sampled_from((0.0, 0.6)))
def test_8_beam_search_is_the_one_written_with_lists(config, source, beam_size, alpha):
    """Every step from the whole prefix, one prefix at a time, nothing kept but lists."""
    model = short_model(config)
    with ended_by_chance(model):
        beams, finished = [((), 0.0)], []
        (limit,) = length_limits(model, [source])
        for length in range(1, limit + 1):
            candidates = []
            for tokens, score in beams:
                logits = model(torch.tensor([source]), torch.tensor([[BOS, *tokens]]))[0, -1].float()
                following = logits.log_softmax(-1).tolist()
                candidates += [((*tokens, i), score + p) for i, p in enumerate(following) if i not in (PAD, UNK, BOS)]
            candidates.sort(key=lambda candidate: -candidate[1])
            finished += [(t, p) for t, p in candidates[:beam_size] if t[-1] == EOS]
            beams = [(t, p) for t, p in candidates if t[-1] != EOS][:beam_size]
            if length == limit:
                finished += beams
            if len(finished) >= beam_size:
                break
        expected = sorted(finished, key=lambda f: -f[1] / length_penalty(len(f[0]), alpha))[:beam_size]
        found = beam_search(model, [source], beam_size, alpha)[0]
    np.testing.assert_allclose([h.log_probability for h in found], [p for _, p in expected], atol=1e-4)
    assert found[0].tokens == expected[0][0]


@pytest.mark.parametrize(("missing", "others"), [(2, "left"), (3, "kept")])
def test_a_search_is_over_once_as_many_have_finished_as_were_missing(missing, others):
    candidates = [0, 1, 0, 1], [EOS, 8, EOS, 9], [-1.0, -2.0, -3.0, -4.0]
    found = _decide(candidates, missing, 3, frozenset({EOS}), at_limit=False)
    assert [each.fate for each in found] == ["finished", others] * 2


def test_the_length_penalty_is_wu_et_als():
    assert length_penalty(1, 0.6) == 1
    assert length_penalty(7, 0.0) == 1
    assert length_penalty(13, 1.0) == 3
    assert length_penalty(13, 0.6) == pytest.approx(3**0.6)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_translation_may_be_fifty_tokens_longer_than_its_source(tiny_model, beam_size):
    """Section 6.1; here </s> never comes."""
    batch = [[5, EOS], [5, 6, 7, 8, EOS]]
    with editing(tiny_model, {"logits": lambda x: x.index_fill(-1, torch.tensor([EOS]), -100.0)}):
        found = [f[0] for f in beam_search(tiny_model, batch, 3)] if beam_size > 1 else greedy(tiny_model, batch)
    assert [len(hypothesis.tokens) for hypothesis in found] == [2 + 50, 5 + 50]


def test_the_models_positions_limit_it_too(tiny_config):
    model = random_model(replace(tiny_config, max_len=9))
    with editing(model, {"logits": lambda x: x.index_fill(-1, torch.tensor([EOS]), -100.0)}):
        assert len(greedy(model, [[5, EOS]])[0].tokens) == 8


def test_the_cache_projects_the_memory_once_and_one_new_position_a_step(tiny_model):
    sizes, layer = [], tiny_model.decoder.layers[0]
    handles = [
        attention.w_k.register_forward_hook(lambda _module, _inputs, k: sizes.append(k.shape[1]))
        for attention in (layer.self_attn, layer.cross_attn)
    ]
    steps = len(greedy(tiny_model, [[5, 6, 7, EOS]])[0].tokens)
    for handle in handles:
        handle.remove()
    assert sizes == [1, 4] + [1] * (steps - 1)


def test_an_impossible_token_is_never_written_however_probable(tiny_model):
    with editing(tiny_model, {"logits": lambda x: x.index_fill(-1, torch.tensor([PAD, UNK, BOS]), 100.0)}):
        tokens = set(greedy(tiny_model, [[5, EOS]])[0].tokens) | set(beam_search(tiny_model, [[5, EOS]])[0][0].tokens)
    assert not tokens & {PAD, UNK, BOS}


def test_decoding_keeps_no_gradients_and_leaves_no_hooks(tiny_config):
    model = random_model(tiny_config).requires_grad_(True)
    with recording(model, ["logits"]) as activations:
        greedy(model, [[5, EOS]])
    assert not activations["logits"].requires_grad


def test_the_tiny_model_ends_its_sentences_and_goes_on_for_long_with_the_long_one(translator):
    """What tests of short and of long sentences rest on."""
    spoken = [len(translator.trace(source, beam_size=1).tgt_tokens) for source, _ in (*SENTENCES, LONG)]
    known = [len(translator.trace(*pair).tgt_tokens) for pair in SENTENCES]
    assert sum(one <= other + 5 for one, other in zip(spoken[:-1], known, strict=True)) >= len(known) / 2
    assert spoken[-1] > 100
