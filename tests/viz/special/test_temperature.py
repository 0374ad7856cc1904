"""Pictures of temperature show the run's own numbers, one range for what is compared, and tokens as text."""

import numpy as np
import pytest

from model.trace import Trace
from tests.viz.payload import KINDS, decode
from viz.special.scaling import runs_chart
from viz.special.temperature import live_weights
from viz.tokens import numbered


@pytest.mark.parametrize("kind", KINDS)
def test_the_payload_holds_the_heads_scores_and_weights(trace: Trace, kind: str) -> None:
    attention = trace.attention(kind, 1)
    names = numbered(attention.query_tokens), numbered(attention.key_tokens)
    payload = live_weights(
        attention, 2, names, (), title="t", temperature=0.3, taus=(0.3, 1.0), row=1, scope="one head"
    )
    header, found = decode(payload)
    assert np.array_equal(found["weights"]["values"], attention.pattern[2])
    assert np.array_equal(found["masked"]["values"], np.where(attention.mask[2], attention.scaled[2], -np.inf))
    assert np.array_equal(found["weights"]["allowed"], attention.mask[2])
    assert (header["temperature"], header["taus"], header["row"]) == (0.3, [0.3, 1.0], 1)
    assert found["weights"]["rows"]["labels"] == names[0]


def test_runs_at_many_temperatures_are_a_dot_and_a_line_each() -> None:
    taus, logs, bits = (0.5, 1.0, 2.0), np.array([-2.0, -0.5, -4.0]), np.array([0.1, 1.0, 2.0])
    left, right = runs_chart(taus, logs, bits).data
    assert (list(left.x), list(left.y), list(right.y)) == (list(taus), list(logs), list(bits))
