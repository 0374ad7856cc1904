"""Scoring functions (section 3.2.1): the identities that the page states, and counts by brute force."""

import numpy as np
import pytest
import torch

from model.analysis.heads.softmax import softmax_peaks
from model.background.scoring_functions import (
    ADDITIVE,
    DOT,
    MULTIPLICATIVE,
    SCALED,
    additive,
    dot_product,
    multiplicative,
    scoring_contenders,
    scoring_costs,
)
from model.checkpoints.translator import Translator
from model.trace import Trace
from tests.model.strategies import KINDS


@pytest.fixture(scope="module")
def trace(translator: Translator) -> Trace:
    return translator.trace("a dog and a cat", target="Ein Hund mit einer Katze.")


@pytest.mark.parametrize("kind", KINDS)
def test_multiplicative_scores_and_biases_are_the_traced_dot_products(trace: Trace, kind: str) -> None:
    attention = trace.attention(kind, 1)
    for head in range(attention.n_heads):
        found = multiplicative(attention, head)
        assert found.total == pytest.approx(attention.scores[head], abs=5e-5)
        rank = np.linalg.matrix_rank(found.w)
        assert rank <= attention.d_k < len(found.w)


def test_each_term_is_the_one_that_it_is_called(trace: Trace) -> None:
    attention = trace.attention("cross", 0)
    found, own = multiplicative(attention, 2), attention.projections
    plain_q = attention.query_input.astype(float) @ own.w_q[2]
    plain_k = attention.key_input.astype(float) @ own.w_k[2]
    assert found.scores == pytest.approx(plain_q @ plain_k.T, abs=1e-5)
    assert found.from_query == pytest.approx(plain_q @ own.b_k[2], abs=1e-5)
    assert found.from_key == pytest.approx(plain_k @ own.b_q[2], abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_peaks_of_the_scaled_scores_are_the_runs_largest_weights(trace: Trace, kind: str) -> None:
    attention = trace.attention(kind, 0)
    peaks = softmax_peaks(attention.scaled[0], attention.mask[0])
    assert peaks == pytest.approx(attention.pattern[0].max(axis=-1), abs=1e-6)


def test_a_row_that_may_look_at_nothing_has_no_peak() -> None:
    peaks = softmax_peaks(np.array([[1e4, 2.0], [3.0, -1e4]]), np.array([[True, True], [False, False]]))
    assert list(peaks) == [1, 0]


@pytest.mark.parametrize(("n", "m", "d_k"), [(1, 1, 1), (2, 3, 4), (5, 4, 2)])
def test_costs_are_counts_of_the_loops(n: int, m: int, d_k: int) -> None:
    pairs = sum(1 for _query in range(n) for _key in range(m) for _ in range(d_k))
    square = d_k * d_k
    costs = scoring_costs(n, m, d_k)
    assert {name: cost.multiply_adds for name, cost in costs.items()} == {
        DOT: pairs,
        SCALED: pairs,
        MULTIPLICATIVE: sum(square for _ in range(n)) + pairs,
        ADDITIVE: sum(square for _ in range(n + m)) + pairs,
    }
    assert costs[ADDITIVE].tanhs == costs[ADDITIVE].numbers == pairs
    assert costs[DOT].tanhs == 0


def test_scores_are_those_of_each_pair() -> None:
    q, k, v = torch.randn(3, 4), torch.randn(5, 4), torch.randn(4)
    for i in range(3):
        for j in range(5):
            assert dot_product(q, k)[i, j].item() == pytest.approx((q[i] * k[j]).sum().item(), abs=1e-5)
            expected = (v * torch.tanh(q[i] + k[j])).sum().item()
            assert additive(q, k, v)[i, j].item() == pytest.approx(expected, abs=1e-5)


def test_what_is_timed_scores_the_heads_own_queries_and_keys(trace: Trace) -> None:
    attention = trace.attention("cross", 1)
    q, k = attention.q[3], attention.k[3]
    contenders = scoring_contenders(q, k, "cpu")
    assert list(contenders) == [DOT, SCALED, MULTIPLICATIVE, ADDITIVE]
    rows = min(len(q), len(k))
    for name, expected in ((DOT, attention.scores[3]), (SCALED, attention.scaled[3])):
        assert contenders[name](20)().shape == (20, 20)
        assert contenders[name](20)()[:rows, :rows].numpy() == pytest.approx(expected[:rows, :rows], abs=1e-5)
    assert all(prepare(20)().shape == (20, 20) for prepare in contenders.values())
