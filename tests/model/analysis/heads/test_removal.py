"""What is switched off costs what a run without it says."""

import numpy as np
import pytest

from model.analysis.heads.removal import Removal, remove_heads, remove_sublayers
from model.interventions import HeadGate, SublayerOff


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
