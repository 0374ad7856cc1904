"""The proof strip's checks fail when the picture is not the model."""

import dataclasses
import math

import numpy as np
import pytest

from model.proof.checks import Check, chain_closes, hooks_change_nothing, prove, rows_sum_to_one
from model.trace import Trace
from tests.model.strategies import KINDS, with_stream
from tests.model.tiny import random_model


def altered(trace: Trace, kind: str, **arrays: np.ndarray) -> Trace:
    attentions = dict(trace.attentions)
    attentions[kind, 1] = dataclasses.replace(attentions[kind, 1], **arrays)
    return dataclasses.replace(trace, attentions=attentions)


def nudged(array: np.ndarray, by: float = 0.01) -> np.ndarray:
    array = array.copy()
    array[(0,) * array.ndim] += by
    return array


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["q", "k", "v", "scores", "scaled", "pattern", "z", "out", "query_input"])
def test_one_altered_number_breaks_the_chain(translator, trace, kind, name):
    lie = altered(trace, kind, **{name: nudged(getattr(trace.attention(kind, 1), name))})
    assert not chain_closes(translator, lie).passed


@pytest.mark.parametrize("name", ["before", "out", "added", "normed", "hidden", "after"])
@pytest.mark.parametrize("number", [0, 2, 4, 6])
def test_one_altered_number_in_a_sublayer_breaks_the_chain(translator, trace, number, name):
    sublayer = trace.sublayers[number]
    if getattr(sublayer, name) is None:
        sublayer = trace.sublayers[9]
    lie = dataclasses.replace(sublayer, **{name: nudged(getattr(sublayer, name))})
    sublayers = tuple(lie if each is sublayer else each for each in trace.streams[sublayer.stack].sublayers)
    assert not chain_closes(translator, with_stream(trace, sublayer.stack, sublayers=sublayers)).passed


@pytest.mark.parametrize("name", ["encoder", "decoder"])
def test_the_chain_reaches_from_the_embeddings_to_the_logits(translator, trace, name):
    stream = trace.streams[name]
    assert not chain_closes(translator, with_stream(trace, name, final=nudged(stream.final))).passed
    for part in ("embedding", "positional", "sum"):
        lie = dataclasses.replace(stream.embedded, **{part: nudged(getattr(stream.embedded, part))})
        assert not chain_closes(translator, with_stream(trace, name, embedded=lie)).passed, part
    assert not chain_closes(translator, dataclasses.replace(trace, logits=nudged(trace.logits))).passed


def test_2_the_last_bit_of_a_logit_is_noticed(translator, trace):
    logits = trace.logits.copy()
    logits[0, 0] = np.nextafter(logits[0, 0], np.float32(np.inf))
    check = hooks_change_nothing(translator, dataclasses.replace(trace, logits=logits))
    assert 0 < check.error < 1e-6
    assert not check.passed


def test_another_models_trace_is_not_this_models(translator, tiny_config, trace):
    other = dataclasses.replace(translator, model=random_model(tiny_config, seed=1))
    assert not hooks_change_nothing(other, trace).passed
    assert not chain_closes(other, trace).passed


def test_a_weight_too_many_or_on_a_masked_key_is_noticed(trace):
    pattern = trace.attention("decoder_self", 1).pattern
    assert not rows_sum_to_one(altered(trace, "decoder_self", pattern=nudged(pattern, 1e-5))).passed
    leak = pattern.copy()
    leak[0, 0, 1] = 1e-12
    assert rows_sum_to_one(altered(trace, "decoder_self", pattern=leak)).error == math.inf


def test_nan_is_no_proof(translator, trace):
    """Python's max() would let it pass."""
    pattern = np.full_like(trace.attention("cross", 1).pattern, np.nan)
    lie = altered(trace, "cross", pattern=pattern)
    assert not rows_sum_to_one(lie).passed
    assert not chain_closes(translator, lie).passed
    assert not Check("", "", math.nan, 1.0).passed


def test_scores_in_the_thousands_do_not_raise_a_false_alarm(tiny_config, translator):
    """Single precision keeps seven digits: at 5,000 the last of them is above the tolerance for numbers around 1."""
    loud = random_model(tiny_config)
    for _path, attention in loud.attentions().values():
        attention.w_q.weight.mul_(60)
    translator = dataclasses.replace(translator, model=loud)
    trace = translator.trace("Two dogs play.", "Zwei Hunde.")
    assert max(np.abs(attention.scores).max() for attention in trace.attentions.values()) > 500
    assert all(check.passed for check in prove(translator, trace))
