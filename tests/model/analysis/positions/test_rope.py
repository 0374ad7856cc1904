"""RoPE on the numbers of a run: what it promises, for any contents and any positions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.analysis.positions.position_table import rotation_blocks, sinusoidal_encoding
from model.analysis.positions.rope import rope, rope_by_offset, rope_scores
from tests.model.strategies import few, runs

seeds = st.integers(0, 2**32 - 1)


def contents(seed: int, length: int, d_k: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(2, length, d_k)), rng.normal(size=(2, length, d_k))


@few
@given(seeds, st.integers(1, 9), st.sampled_from((2, 4, 8, 32)), st.integers(0, 500))
def test_shifting_both_leaves_every_rotated_score(seed: int, length: int, d_k: int, shift: int) -> None:
    q, k = contents(seed, length, d_k)
    assert rope_scores(q, k, shift) == pytest.approx(rope_scores(q, k), abs=1e-10)


@few
@given(seeds, st.integers(0, 300), st.integers(0, 300))
def test_the_same_contents_score_by_their_offset_alone(seed: int, m: int, n: int) -> None:
    q, k = (x[0] for x in contents(seed, 1, 8))
    score = (rope(q, np.array([m])) @ rope(k, np.array([n])).T).item()
    assert rope_by_offset(q[0], k[0], np.array([n - m])).item() == pytest.approx(score, abs=1e-10)


@few
@given(runs())
def test_without_an_offset_a_runs_scores_stay(run) -> None:
    attention = run.trace.attention("encoder_self", 0)
    rotated = rope_scores(attention.q, attention.k)
    assert np.diagonal(rotated, axis1=1, axis2=2) == pytest.approx(
        np.diagonal(attention.scores, axis1=1, axis2=2), rel=5e-5, abs=5e-5
    )
    assert np.linalg.norm(rope(attention.q, np.arange(attention.q.shape[1])), axis=-1) == pytest.approx(
        np.linalg.norm(attention.q, axis=-1), rel=1e-5
    )


def test_the_angles_are_those_of_the_sinusoids() -> None:
    x = np.random.default_rng(0).normal(size=(1, 16))
    blocks = rotation_blocks(sinusoidal_encoding(64, 16), 11)
    turned = np.einsum("prc,pc->pr", blocks.transpose(0, 2, 1), x.reshape(-1, 2)).ravel()
    assert rope(x, np.array([11]))[0] == pytest.approx(turned, abs=1e-6)


def test_different_offsets_do_change_a_score() -> None:
    q, k = contents(0, 6, 8)
    assert np.abs(rope_scores(q, k) - q @ k.transpose(0, 2, 1)).max() > 0.1


def test_an_odd_head_cannot_be_turned_in_pairs() -> None:
    with pytest.raises(ValueError, match="d_k = 5 is odd"):
        rope(np.zeros((3, 5)), np.arange(3))
