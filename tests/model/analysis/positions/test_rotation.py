"""RoPE on the numbers of a run: what it promises, for any contents and any positions."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.analysis.positions.rotation import rotate_pairs, shifted_scores, with_rope
from tests.model.strategies import few, runs


@few
@given(runs(), st.integers(0, 500))
def test_shifting_both_leaves_every_rotated_score_and_offset_0_the_runs(run, shift: int) -> None:
    attention = run.trace.attention("encoder_self", 0)
    rotated, size = with_rope(attention), float(np.abs(attention.scores).max())
    assert np.linalg.norm(rotated.q, axis=-1) == pytest.approx(np.linalg.norm(attention.q, axis=-1), rel=1e-5)
    for head in range(attention.n_heads):
        scores = shifted_scores(rotated, head, 0)
        assert shifted_scores(rotated, head, shift) == pytest.approx(scores, abs=1e-10 * size)
        assert np.diagonal(scores) == pytest.approx(np.diagonal(attention.scores[head]), rel=5e-5, abs=5e-5)
        assert scores == pytest.approx(rotated.q[head] @ rotated.k[head].T, abs=1e-10 * size)


@few
@given(runs(), st.integers(0, 50), st.integers(0, 50))
def test_the_same_contents_score_by_their_offset_alone(run, m: int, n: int) -> None:
    attention = run.trace.attention("encoder_self", 0)
    query, key = (row % len(attention.query_tokens) for row in (m, n))
    q, k = (x[0, row].astype(float) for x, row in ((attention.q, query), (attention.k, key)))
    theta = 10_000.0 ** (-np.arange(0, attention.d_k, 2) / attention.d_k)
    by_hand = ((q[::2] - 1j * q[1::2]) * (k[::2] + 1j * k[1::2]) * np.exp(1j * (n - m) * theta)).real.sum()
    pairs = rotate_pairs(with_rope(attention), 0, query, key)
    assert pairs.scores[pairs.offsets == n - m].item() == pytest.approx(by_hand, abs=1e-8)


def test_an_odd_head_cannot_be_turned_in_pairs(translator) -> None:
    attention = translator.trace("A dog runs.").attention("encoder_self", 0)
    odd = replace(attention, q=attention.q[..., :-1], k=attention.k[..., :-1])
    with pytest.raises(ValueError, match="d_k = 7 is odd"):
        with_rope(odd)
