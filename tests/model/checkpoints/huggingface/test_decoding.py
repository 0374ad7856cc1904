"""Searches and samplers of this project on Hugging Face models: every number is that of a plain run of the model."""

import copy
from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest
import torch

from model.checkpoints.huggingface.opened import HookedCheckpoint
from model.generation.beam_tree import BeamTree, search_again
from model.generation.sampling import Sampling, sample_again
from model.generation.search import greedy
from model.generation.steps import ids_to_decode_from, steps_of
from model.interventions import HeadGate, Intervention, MaskEdit
from model.trace import Trace
from tests.model.checkpoints.huggingface.families import SOURCE
from tests.model.checkpoints.huggingface.test_families import eager, opened

LANGUAGE_MODELS = ("GPT-2", "OPT", "Llama, grouped", "Mistral", "Gemma 2", "GPT-NeoX")
"""with windows shorter than the text, a soft cap, shared keys and values"""
TRANSLATORS = ("T5", "Marian", "BART", "M2M100")
NAMES = LANGUAGE_MODELS + TRANSLATORS
CHANGES = {
    "as it is": (),
    "a head off": (HeadGate(0.0, "decoder_self", 1, 2),),
    "a cell masked": (MaskEdit(forbid=((4, 1),), kind="decoder_self"),),
}
"""the last one needs every row, so that no cache can be used"""
WRITTEN = 6
pytestmark = pytest.mark.usefixtures("short_texts")


def run(name: str, *changes: Intervention) -> Trace:
    model = opened(name)
    if name in TRANSLATORS:
        return model.trace(SOURCE, interventions=changes)
    return model.trace(SOURCE, max_new_tokens=WRITTEN, interventions=changes)


def search(name: str, trace: Trace, beam_size: int) -> BeamTree:
    return search_again(opened(name).model, trace, beam_size, *(() if name in TRANSLATORS else (WRITTEN,)))


def rerun(name: str, trace: Trace, tokens: tuple[int, ...]) -> Trace:
    """The same text with other tokens behind what was given, teacher-forced."""
    return opened(name).trace_ids(SOURCE, (*trace.next_ids[: trace.first_written], *tokens), trace.interventions)


@pytest.mark.parametrize(("name", "changed"), list(zip(NAMES, cycle(CHANGES), strict=False)))
def test_every_node_of_a_finished_path_is_a_row_of_a_teacher_forced_run(name: str, changed: str) -> None:
    trace = run(name, *CHANGES[changed])
    tree = search(name, trace, 3)
    kind = "cross" if name in TRANSLATORS else "decoder_self"
    for end, weights in zip(tree.ends, tree.attention, strict=True):
        nodes = [tree.nodes[i] for i in tree.path(end)]
        tokens = tuple(node.token for node in nodes)
        again = rerun(name, trace, tokens)
        first, n = trace.first_written, len(tokens)
        expected = again.target_log_probabilities[first : first + n]
        np.testing.assert_allclose([node.token_log_probability for node in nodes], expected, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose([node.log_probability for node in nodes], expected.cumsum(), rtol=1e-3, atol=1e-3)
        for layer in again.kind(kind).layers:
            pattern = again.attention(kind, layer).pattern[:, first : first + n, : weights.shape[-1]]
            np.testing.assert_allclose(weights[layer], pattern, atol=2e-3)


@pytest.mark.parametrize("name", NAMES)
def test_the_cache_changes_nothing_and_greedy_is_transformers_own(name: str) -> None:
    trace, model = run(name), opened(name).model
    source = ids_to_decode_from(model, trace)
    cached, plain = (steps_of(model)(model, [source, source], use_cache=use_cache) for use_cache in (True, False))
    with torch.inference_mode():
        for _, one, other in zip(range(WRITTEN), cached, plain, strict=False):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-3)
            token = one.argmax(dim=-1)
            cached.extend(token, torch.tensor([1, 0]))
            plain.extend(token, torch.tensor([1, 0]))
    options = {
        "num_beams": 1,
        "do_sample": False,
        "max_new_tokens": WRITTEN + 1,
        "attention_mask": torch.ones(1, len(source)),
    }
    wrote = eager(name).generate(torch.tensor([source]), **options)[0].tolist()
    wrote = wrote[1:] if name in TRANSLATORS else wrote[len(source) :]
    (found,) = greedy(model, [source])
    tokens = found.tokens[:WRITTEN]
    # transformers puts an end where its length limit comes first
    assert list(tokens) == wrote[: len(tokens)]


def with_end(name: str, end: int) -> HookedCheckpoint:
    """The model, with a token that ends its texts."""
    model = copy.deepcopy(opened(name).model)
    model.ends = frozenset({end})
    return replace(opened(name), model=model)


@pytest.mark.parametrize("name", ["GPT-2", "Llama, grouped", "T5", "Marian"])
def test_a_text_ends_at_the_end_token_as_in_transformers(name: str) -> None:
    trace, plain = run(name), opened(name).model
    source = ids_to_decode_from(plain, trace)
    (free,) = greedy(plain, [source])
    end = free.tokens[2]
    model = with_end(name, end).model
    (found,) = greedy(model, [source])
    assert found.tokens == free.tokens[: free.tokens.index(end) + 1]
    options = {"num_beams": 1, "do_sample": False, "max_new_tokens": 9, "eos_token_id": end}
    ids = torch.tensor([source])
    wrote = eager(name).generate(ids, attention_mask=torch.ones_like(ids), **options)[0].tolist()
    assert wrote[1 if name in TRANSLATORS else len(source) :] == list(found.tokens)
    tree = search_again(model, trace, 3, *(() if name in TRANSLATORS else (WRITTEN,)))
    finished = [tree.hypothesis(node, 0).tokens for node in tree.ends]
    assert all(end not in tokens[:-1] for tokens in finished)
    for text in sample_again(model, trace, Sampling(), 3, 8, *(() if name in TRANSLATORS else (WRITTEN,))):
        assert end not in text.tokens[:-1]


@pytest.mark.parametrize("name", ["M2M100", "Marian"])
def test_a_forced_first_token_is_written_with_its_own_probability(name: str) -> None:
    trace, model = run(name), copy.deepcopy(opened(name).model)
    model.model.generation_config.forced_bos_token_id = 17
    source = ids_to_decode_from(model, trace)
    (found,) = greedy(model, [source])
    reference = eager(name)
    reference.generation_config.forced_bos_token_id = 17
    options = {"num_beams": 1, "do_sample": False, "max_new_tokens": WRITTEN + 1}
    ids = torch.tensor([source])
    wrote = reference.generate(ids, attention_mask=torch.ones_like(ids), **options)[0, 1:].tolist()
    assert list(found.tokens[:WRITTEN]) == wrote[:WRITTEN]
    assert wrote[0] == 17
    expected = rerun(name, trace, found.tokens).target_log_probabilities[: len(found.tokens)]
    assert found.log_probability == pytest.approx(expected.sum(), rel=1e-3)
    tree = search_again(model, trace, 2)
    assert all(tree.nodes[tree.path(end)[0]].token == 17 for end in tree.ends)
