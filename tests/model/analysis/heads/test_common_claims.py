"""What is often said, measured: each number beside a slower way to the same one."""

import math

import numpy as np
import pytest

from model.analysis.heads.common_claims import (
    SEEDS,
    Removal,
    evenness,
    mean_evenness,
    remove_heads,
    remove_sublayers,
    shift_positions,
    untrained_evenness,
)
from model.interventions import HeadGate, SublayerOff


@pytest.fixture(scope="module")
def trace(translator):
    return translator.trace("the dog sees a cat")


def test_evenness_is_the_entropy_of_a_row_beside_that_of_equal_weights(trace) -> None:
    for attention in trace.attentions.values():
        found = evenness(attention)
        for head, query in np.ndindex(found.shape):
            weights = attention.pattern[head, query][attention.mask[head, query]].astype(float)
            if len(weights) == 1:
                assert math.isnan(found[head, query])
                continue
            expected = -sum(w * math.log(w) for w in weights if w > 0) / math.log(len(weights))
            assert found[head, query] == pytest.approx(expected, abs=1e-9)


def test_heads_go_in_the_order_of_what_they_cost_alone(translator, trace) -> None:
    *_, (share, removal) = remove_heads(translator, trace)
    gates = [
        HeadGate(0.0, kind=k.name, layer=layer, head=h)
        for k in trace.kinds
        for layer in k.layers
        for h in range(k.heads)
    ]
    assert share == 1
    assert len(removal.alone) == len(gates)
    tokens = len(trace.next_ids)

    def change(*off: HeadGate) -> float:
        return (translator.rerun(trace, off).log_probability - trace.log_probability) / tokens

    assert removal.alone[1] == pytest.approx(change(gates[1]), abs=1e-5)
    assert removal.together[0] == 0
    assert removal.together[-1] == pytest.approx(change(*gates), abs=1e-5)
    least = max(range(len(gates)), key=lambda i: removal.alone[i])
    if removal.counts[1] == 1:
        assert removal.together[1] == pytest.approx(change(gates[least]), abs=1e-5)


def test_heads_are_removable_until_the_first_loss() -> None:
    counts = np.array([0, 2, 4, 6])
    assert Removal(np.zeros(6), counts, np.array([0.0, -0.05, -0.2, -0.01])).removable(0.1) == 2
    assert Removal(np.zeros(6), counts, np.array([0.0, 0.1, 0.1, -0.09])).removable(0.1) == 6


def test_each_sublayer_is_off_once(translator, trace) -> None:
    *_, (share, found) = remove_sublayers(translator, trace)
    assert share == 1
    assert set(found) == {(each.stack, each.layer, each.name) for each in trace.sublayers}
    off = translator.rerun(trace, (SublayerOff("encoder", 0, "self_attn"),)).log_probability
    assert found["encoder", 0, "self_attn"] == pytest.approx(
        (off - trace.log_probability) / len(trace.next_ids), rel=1e-6
    )


def test_an_untrained_model_attends_more_evenly_and_the_trained_one_stays_as_it_is(translator, trace) -> None:
    before = translator.model.output.weight.detach().clone()
    found = untrained_evenness(translator, trace)
    assert found.shape == (len(SEEDS),)
    assert len(set(found)) == len(SEEDS)
    assert (found > mean_evenness(trace)).all()
    assert (translator.model.output.weight == before).all()


def test_a_shift_by_nothing_changes_nothing_and_a_far_one_is_another_run(translator, trace) -> None:
    found = shift_positions(translator, trace, (0, 300))
    assert found[0] == pytest.approx(0, abs=1e-6)
    assert found[300] != pytest.approx(0, abs=1e-4)
    assert translator.rerun(trace, ()).log_probability == trace.log_probability
