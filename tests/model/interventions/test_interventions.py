"""Interventions do what their names say: held against the same change worked out by hand in numpy."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.interventions import AttentionTemperature, HeadGate, LiftCausalMask, MaskEdit
from model.trace import Attention, Trace
from tests.model.by_hand import PaperModel, softmax
from tests.model.strategies import Run, assert_bit_equal, few, runs
from tests.model.tiny import random_model

DOUBLE = torch.float64
plain_runs = runs(changed=False, dtype=DOUBLE)


def addresses(run: Run) -> list[tuple[str, int]]:
    return list(run.trace.attentions)


def changed(run: Run, *interventions) -> Trace:
    return run.translator.trace(run.source, run.target, interventions=interventions)


def contribution(attention: Attention, head: int) -> np.ndarray:
    """(query, d_model): what one head adds to the attention's output."""
    return attention.z[head] @ attention.projections.w_o[head]


@few
@given(plain_runs)
def test_the_model_computes_the_papers_equations(run):
    paper = PaperModel(run.translator.model)
    np.testing.assert_allclose(paper.logits(run.trace.src_ids, run.trace.tgt_ids), run.trace.logits, rtol=0, atol=1e-9)
    for address, pattern in paper.patterns.items():
        np.testing.assert_allclose(pattern, run.trace.attentions[address].pattern, rtol=0, atol=1e-9)


@few
@given(plain_runs, st.floats(0.1, 10), st.data())
def test_temperature_divides_the_scores_of_the_heads_that_it_names(run, tau, data):
    kind, layer = data.draw(st.sampled_from(addresses(run)))
    head = data.draw(st.none() | st.integers(0, run.translator.model.config.n_heads - 1))
    taus = np.ones(run.translator.model.config.n_heads)
    taus[head if head is not None else slice(None)] = tau
    trace = changed(run, AttentionTemperature(tau, kind=kind, layer=layer, head=head))
    paper = PaperModel(run.translator.model, taus={(kind, layer): taus})
    np.testing.assert_allclose(paper.logits(trace.src_ids, trace.tgt_ids), trace.logits, rtol=0, atol=1e-9)
    assert trace.attention(kind, layer).temperature.tolist() == taus.tolist()
    assert all((a.temperature == 1).all() for address, a in trace.attentions.items() if address != (kind, layer))


@few
@given(plain_runs, st.floats(0, 1), st.data())
def test_a_gate_scales_the_heads_that_it_names(run, gate, data):
    kind, layer = data.draw(st.sampled_from(addresses(run)))
    head = data.draw(st.none() | st.integers(0, run.translator.model.config.n_heads - 1))
    gates = np.ones(run.translator.model.config.n_heads)
    gates[head if head is not None else slice(None)] = gate
    trace = changed(run, HeadGate(gate, kind=kind, layer=layer, head=head))
    paper = PaperModel(run.translator.model, gates={(kind, layer): gates})
    np.testing.assert_allclose(paper.logits(trace.src_ids, trace.tgt_ids), trace.logits, rtol=0, atol=1e-9)


@few
@given(plain_runs, st.data())
def test_a_closed_gate_removes_exactly_its_heads_contribution(run, data):
    """Claim 10, for the layer's own output: what comes after it reacts."""
    kind, layer = data.draw(st.sampled_from(addresses(run)))
    head = data.draw(st.integers(0, run.translator.model.config.n_heads - 1))
    before = run.trace.attention(kind, layer)
    zeroed = changed(run, HeadGate(0.0, kind=kind, layer=layer, head=head)).attention(kind, layer)
    np.testing.assert_allclose(zeroed.out, before.out - contribution(before, head), rtol=0, atol=1e-12)
    assert np.array_equal(zeroed.pattern, before.pattern), "the pattern itself stays"


@few
@given(plain_runs, st.floats(0, 1), st.data())
def test_mean_ablation_puts_the_heads_mean_where_zero_ablation_puts_nothing(run, gate, data):
    kind, layer = data.draw(st.sampled_from(addresses(run)))
    head = data.draw(st.integers(0, run.translator.model.config.n_heads - 1))
    z = run.trace.attention(kind, layer).z[head]
    if kind == "encoder_self":
        mean = np.broadcast_to(z.mean(axis=0), z.shape)
    else:
        mean = np.stack([z[: t + 1].mean(axis=0) for t in range(len(z))])
    trace = changed(run, HeadGate(gate, kind=kind, layer=layer, head=head, mode="mean"))
    np.testing.assert_allclose(trace.attention(kind, layer).z[head], gate * z + (1 - gate) * mean, rtol=0, atol=1e-12)


@few
@given(plain_runs, st.data())
def test_a_forbidden_cell_gets_no_weight_and_the_others_share_it(run, data):
    kind, layer = data.draw(st.sampled_from(addresses(run)))
    before = run.trace.attention(kind, layer)
    query = data.draw(st.integers(0, len(before.query_tokens) - 1))
    key = data.draw(st.integers(0, len(before.key_tokens) - 1))
    head = data.draw(st.integers(0, before.n_heads - 1))
    after = changed(run, MaskEdit(forbid=((query, key),), kind=kind, layer=layer, head=head)).attention(kind, layer)
    expected = before.pattern.copy()
    expected[head, query, key] = 0
    rest = expected[head, query].sum()
    expected[head, query] /= rest if rest else 1
    np.testing.assert_allclose(after.pattern, expected, rtol=0, atol=1e-9)


def test_an_allowed_cell_may_be_seen_by_that_query_alone(translator):
    trace = translator.trace(
        "Two dogs", "Zwei Hunde", interventions=(MaskEdit(allow=((0, 2),), kind="decoder_self", layer=1, head=3),)
    )
    mask = trace.attention("decoder_self", 1).mask
    expected = np.tri(len(trace.tgt_tokens), dtype=bool)[None].repeat(4, axis=0)
    expected[3, 0, 2] = True
    assert np.array_equal(mask, expected)


def test_cells_beyond_the_sentence_do_nothing(translator):
    edit = MaskEdit(forbid=((90, 0), (0, 90)), allow=((90, 90),))
    plain = translator.trace("Two dogs", "Zwei Hunde")
    assert_bit_equal(plain, translator.trace("Two dogs", "Zwei Hunde", interventions=(edit,)))


def test_temperatures_multiply_and_order_does_not_matter(translator):
    two, three = AttentionTemperature(2.0, kind="cross"), AttentionTemperature(3.0, layer=1, head=0)
    trace = translator.trace("Two dogs", "Zwei Hunde", interventions=(two, three))
    cross = trace.attention("cross", 1)
    assert cross.temperature.tolist() == [6, 2, 2, 2]
    np.testing.assert_allclose(
        cross.pattern, softmax(cross.scaled / np.array([6, 2, 2, 2])[:, None, None]), rtol=0, atol=1e-6
    )
    assert trace.attention("encoder_self", 0).temperature.tolist() == [1, 1, 1, 1]
    assert_bit_equal(trace, translator.trace("Two dogs", "Zwei Hunde", interventions=(three, two)))


def test_a_decoding_under_an_intervention_is_the_changed_models(translator):
    silent = HeadGate(0.0, kind="cross")
    one, other = translator.translate(["Two dogs.", "A man rides a red bicycle."], 1, interventions=(silent,))
    assert one[:20] == other[:20], "without cross-attention the source has no say"


def test_interventions_that_name_positions_give_each_sentence_what_it_gives_alone(translator, tiny_config):
    short = random_model(dataclasses.replace(tiny_config, max_len=24))
    translator = dataclasses.replace(translator, model=short)
    texts = ["Two dogs.", "The cat sat on the mat."]
    for change in (
        HeadGate(0.0, mode="mean"),
        MaskEdit(allow=tuple((i, 12) for i in range(9)), kind="cross"),
        LiftCausalMask(),
    ):
        together = translator.translate(texts, 1, interventions=(change,))
        assert together == [translator.translate([text], 1, interventions=(change,))[0] for text in texts]


@pytest.mark.parametrize("tau", [0, -1.0, math.nan, math.inf, 1e-40, 1e39])
def test_a_temperature_must_be_above_zero_and_finite(tau):
    with pytest.raises(ValueError, match="tau must be a number above 0"):
        AttentionTemperature(tau)


@pytest.mark.parametrize("gate", [-0.1, 1.1, math.nan])
def test_a_gate_lies_between_zero_and_one(gate):
    with pytest.raises(ValueError, match="gate must lie in"):
        HeadGate(gate)
    with pytest.raises(ValueError, match="mode must be zero or mean"):
        HeadGate(0.5, mode="median")


def test_a_cell_cannot_count_from_the_end():
    with pytest.raises(ValueError, match="a position must be a whole number from 0"):
        MaskEdit(forbid=((0, -1),))


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ({"kind": "self"}, "kind must be one of"),
        ({"layer": 2}, "the model has no attention"),
        ({"head": 4}, "the model has no attention"),
        ({"head": -1}, "a head must be a whole number"),
    ],
)
def test_an_address_that_the_model_lacks_is_refused_in_a_sentence(translator, address, sentence):
    with pytest.raises(ValueError, match=sentence):
        translator.trace("Two dogs", interventions=(AttentionTemperature(2.0, **address),))
