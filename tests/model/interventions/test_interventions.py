"""Interventions do what their names say: held against the same change worked out by hand in numpy."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.interventions import AttentionTemperature, HeadGate, LiftCausalMask, MaskEdit
from model.trace import Trace
from tests.model.by_hand import PaperModel, softmax
from tests.model.strategies import Run, assert_bit_equal, few, runs
from tests.model.tiny import random_model

DOUBLE = torch.float64
plain_runs = runs(changed=False, dtype=DOUBLE)


def changed(run: Run, *interventions) -> Trace:
    return run.translator.trace(run.source, run.target, interventions=interventions)


@few
@given(plain_runs)
def test_the_model_computes_the_papers_equations(run):
    paper = PaperModel(run.translator.model)
    np.testing.assert_allclose(paper.logits(run.trace.src_ids, run.trace.tgt_ids), run.trace.logits, rtol=0, atol=1e-9)
    for address, pattern in paper.patterns.items():
        np.testing.assert_allclose(pattern, run.trace.attentions[address].pattern, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("change", "of_paper", "values"),
    [(AttentionTemperature, "taus", st.floats(0.1, 10)), (HeadGate, "gates", st.floats(0, 1))],
)
@few
@given(run=plain_runs, data=st.data())
def test_temperatures_divide_the_scores_and_gates_scale_the_heads_that_they_name(change, of_paper, values, run, data):
    kind, layer = data.draw(st.sampled_from(list(run.trace.attentions)))
    head = data.draw(st.none() | st.integers(0, run.translator.model.config.n_heads - 1))
    by_head = np.ones(run.translator.model.config.n_heads)
    by_head[head if head is not None else slice(None)] = value = data.draw(values)
    trace = changed(run, change(value, kind=kind, layer=layer, head=head))
    paper = PaperModel(run.translator.model, **{of_paper: {(kind, layer): by_head}})
    np.testing.assert_allclose(paper.logits(trace.src_ids, trace.tgt_ids), trace.logits, rtol=0, atol=1e-9)
    for address, attention in trace.attentions.items():
        acts = change is AttentionTemperature and address == (kind, layer)
        assert attention.temperature.tolist() == (by_head if acts else np.ones_like(by_head)).tolist()


@few
@given(plain_runs, st.floats(0, 1), st.data())
def test_mean_ablation_puts_the_heads_mean_where_zero_ablation_puts_nothing(run, gate, data):
    kind, layer = data.draw(st.sampled_from(list(run.trace.attentions)))
    head = data.draw(st.integers(0, run.translator.model.config.n_heads - 1))
    z = run.trace.attention(kind, layer).z[head]
    if kind == "encoder_self":
        mean = np.broadcast_to(z.mean(axis=0), z.shape)
    else:
        mean = np.stack([z[: t + 1].mean(axis=0) for t in range(len(z))])
    trace = changed(run, HeadGate(gate, kind=kind, layer=layer, head=head, mode="mean"))
    np.testing.assert_allclose(trace.attention(kind, layer).z[head], gate * z + (1 - gate) * mean, rtol=0, atol=1e-12)


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
