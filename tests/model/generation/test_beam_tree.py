"""The beam search that keeps its whole tree finds what the plain one finds, and its back-pointers tell the truth."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.generation.beam_tree import beam_tree
from model.generation.search import FATES, beam_search
from model.generation.steps import length_limits
from model.hooks import recording
from model.network.config import BOS, EOS, PAD, UNK
from tests.model.generation.test_search import ended_by_chance, short_model
from tests.model.strategies import configs, few

sources = st.lists(st.integers(4, 359), min_size=0, max_size=6).map(lambda ids: [*ids, EOS])
beam_sizes = st.integers(1, 8)


@few
@given(configs(), sources, beam_sizes, st.floats(0, 2))
def test_8_it_finds_what_the_plain_search_finds(config, source, beam_size, alpha):
    model = short_model(config)
    with ended_by_chance(model):
        tree = beam_tree(model, source, beam_size)
        (expected,) = beam_search(model, [source], beam_size, alpha)
    found = [tree.hypothesis(tree.ends[place], alpha) for place in tree.ranking(alpha)[:beam_size]]
    assert [h.tokens for h in found] == [h.tokens for h in expected]
    for ours, plain in zip(found, expected, strict=True):
        assert ours.log_probability == pytest.approx(plain.log_probability, abs=1e-5)
        assert ours.score == pytest.approx(plain.score, abs=1e-5)


@few
@given(configs(), sources, beam_sizes)
def test_every_candidate_is_its_parent_and_one_token_more_and_only_what_is_kept_grows(config, source, beam_size):
    model = short_model(config)
    with ended_by_chance(model):
        tree = beam_tree(model, source, beam_size)
    for node in tree.nodes:
        parent = tree.nodes[node.parent] if node.parent >= 0 else None
        before = parent.log_probability if parent else 0.0
        assert node.log_probability == pytest.approx(before + node.token_log_probability, abs=1e-4)
        assert (parent is None) == (node.step == 0)
        assert parent is None or (parent.step, parent.fate) == (node.step - 1, "kept")
        assert node.token not in (PAD, UNK, BOS)
        assert node.fate in FATES
    (limit,) = length_limits(model, [source])
    last = tree.nodes[-1].step
    for step in range(last + 1):
        found = [node for node in tree.nodes if node.step == step]
        assert [node.rank for node in found] == list(range(2 * beam_size))
        assert found == sorted(found, key=lambda node: -node.log_probability)
        assert sum(node.fate == "kept" for node in found) == (0 if step == last else beam_size)
    assert len(tree.ends) >= beam_size
    for end in tree.ends:
        assert tree.nodes[end].token == EOS or tree.nodes[end].step == limit - 1


@pytest.mark.parametrize("beam_size", [1, 3, 4])
def test_8_attention_along_the_back_pointers_is_that_of_the_finished_sentence_read_once(translator, beam_size):
    """Claim 8: the weights of the search's own steps are the rows of a teacher-forced run."""
    source = [*translator.tokenizer.encode("a dog and a cat"), EOS]
    tree = beam_tree(translator.model, source, beam_size)
    paths = [path for (kind, _), (path, _) in translator.model.attentions().items() if kind == "cross"]
    for end, attention in zip(tree.ends, tree.attention, strict=True):
        tokens = tree.hypothesis(end, 0).tokens
        with torch.inference_mode(), recording(translator.model) as activations:
            translator.model(torch.tensor([source]), torch.tensor([[BOS, *tokens[:-1]]]))
        for layer, path in enumerate(paths):
            expected = activations[f"{path}.pattern"][0].numpy()
            np.testing.assert_allclose(attention[layer], expected, atol=5e-5)


def test_the_length_penalty_ranks_and_never_prunes(translator):
    source = [*translator.tokenizer.encode("a dog"), EOS]
    tree = beam_tree(translator.model, source, 4)
    by_probability = [tree.nodes[tree.ends[place]].log_probability for place in tree.ranking(0)]
    assert by_probability == sorted(by_probability, reverse=True)
    assert sorted(tree.ranking(2)) == sorted(tree.ranking(0))
