"""Linear attention: features estimate the kernel they are said to, and one state gives what the matrix gives."""

from dataclasses import replace

import numpy as np
import pytest

from model.analysis.distributions import total_variation
from model.analysis.mechanisms.linear_attention import (
    DRAWS,
    FEATURES,
    draw_omega,
    elu_features,
    kernel_weights,
    linear_attention,
    positive_features,
    recurrent_attention,
    sweep_features,
)
from model.trace import Attention
from tests.model.by_hand import softmax
from tests.model.strategies import KINDS

D_K = 8


@pytest.fixture(scope="module", params=KINDS)
def attention(request, translator) -> Attention:
    return translator.trace("A dog runs and a cat sat.", "Ein Hund rennt.").attention(request.param, 1)


def vectors(seed: int, rows: int = 6, size: float = 0.5) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, D_K)) * size


@pytest.mark.parametrize("size", [3, 8, 20])
def test_the_kernel_is_estimated_without_bias(size: int) -> None:
    x, y, draws = vectors(1, size=0.3), vectors(2, size=0.3), 2000
    omegas = [draw_omega(size, D_K, seed) for seed in range(draws)]
    found = np.array([np.exp(positive_features(x, o)) @ np.exp(positive_features(y, o)).T for o in omegas])
    error = found.std(axis=0) / np.sqrt(draws)
    assert (abs(found.mean(axis=0) - np.exp(x @ y.T)) < 5 * error).all()
    assert (error < 0.1 * np.exp(x @ y.T)).all(), "else the line above would notice nothing"


def test_omega_is_normal_and_orthogonal_in_blocks() -> None:
    omega = draw_omega(2 * D_K + 3, D_K, 0)
    products = omega @ omega.T
    for block in (slice(0, D_K), slice(D_K, 2 * D_K), slice(2 * D_K, None)):
        own = products[block, block]
        np.testing.assert_allclose(own - np.diag(np.diag(own)), 0, atol=1e-12)
    many = np.stack([draw_omega(D_K, D_K, seed) for seed in range(3000)])
    standard = np.eye(D_K)
    for row in (0, D_K - 1):
        np.testing.assert_allclose(many[:, row].mean(axis=0), 0, atol=5 / np.sqrt(3000))
        np.testing.assert_allclose(many[:, row].T @ many[:, row] / 3000, standard, atol=5 * np.sqrt(2 / 3000))
    assert not np.array_equal(many[0], many[1])
    np.testing.assert_array_equal(draw_omega(4, D_K, 7), draw_omega(1024, D_K, 7)[:4])


@pytest.fixture(scope="module")
def estimates() -> np.ndarray:
    """Of the exponential of the product of two vectors, from 16 independent features each."""
    x, y = vectors(3, 1, 0.3), vectors(4, 1, 0.3)
    draws = np.random.default_rng(0).normal(size=(20_000, 16, D_K))
    return np.array([np.exp(positive_features(x, omega) + positive_features(y, omega)).sum() for omega in draws])


def test_lemma_2_is_the_spread_of_independent_features(attention, estimates) -> None:
    sweep = sweep_features(attention, 0)
    x, y = vectors(3, 1, 0.3), vectors(4, 1, 0.3)
    relative = estimates.std() / np.exp((x * y).sum())
    told = replace(sweep, distance=float(((x + y) ** 2).sum())).deviation(16)
    assert 10**told == pytest.approx(relative, rel=0.1)
    assert np.isfinite(replace(sweep, distance=5000.0).deviation(4))
    assert replace(sweep, distance=0.0).deviation(4) < -100


def test_the_median_distance_is_that_of_the_visible_pairs(attention) -> None:
    x, y = (v[2].astype(float) * np.sqrt(attention.scale) for v in (attention.q, attention.k))
    pairs = [((x[i] + y[j]) ** 2).sum() for i, j in zip(*np.nonzero(attention.mask[2]), strict=True)]
    assert sweep_features(attention, 2).distance == pytest.approx(np.median(pairs))


def test_weights_are_quotients_of_the_feature_maps(attention) -> None:
    q, k, mask = attention.q[1].astype(float), attention.k[1].astype(float), attention.mask[1]
    phi_q, phi_k = (np.where(x > 0, x + 1, np.exp(x)) for x in (q, k))
    kernel = phi_q @ phi_k.T * mask
    np.testing.assert_allclose(linear_attention(attention, 1, 4, 0).elu, kernel / kernel.sum(1, keepdims=True))
    omega = draw_omega(16, q.shape[1], 5)
    x, y = (v * np.sqrt(attention.scale) for v in (q, k))
    phi_x, phi_y = (np.exp(v @ omega.T - (v**2).sum(1, keepdims=True) / 2) / 4 for v in (x, y))
    kernel = phi_x @ phi_y.T * mask
    np.testing.assert_allclose(
        linear_attention(attention, 1, 16, 5).random, kernel / kernel.sum(1, keepdims=True), rtol=1e-9
    )


@pytest.mark.parametrize("size", [1.0, 30.0, 1000.0])
def test_features_that_exceed_floating_point_still_give_weights(size: float) -> None:
    x, y, omega = vectors(5, size=size), vectors(6, size=size), draw_omega(16, D_K, 0)
    mask = np.tril(np.ones((6, 6), dtype=bool))
    logs = positive_features(x, omega), positive_features(y, omega)
    exact = np.logaddexp.reduce(logs[0][:, None] + logs[1][None], axis=-1)
    for bias in (None, vectors(7)[:, :6] * 10):
        expected = softmax(np.where(mask, exact if bias is None else exact + bias, -np.inf))
        np.testing.assert_allclose(kernel_weights(*logs, mask, bias), expected, atol=1e-9)
    z = recurrent_attention(*logs, vectors(8), mask)
    np.testing.assert_allclose(z, kernel_weights(*logs, mask) @ vectors(8), atol=1e-9)


def test_a_query_without_a_visible_key_gets_no_weights() -> None:
    mask = np.tril(np.ones((6, 6), dtype=bool), -1)
    logs = elu_features(vectors(5)), elu_features(vectors(6))
    weights = kernel_weights(*logs, mask, vectors(7)[:, :6])
    assert (weights[0] == 0).all()
    np.testing.assert_allclose(weights[1:].sum(axis=1), 1)
    assert (recurrent_attention(*logs, vectors(8), mask)[0] == 0).all()


@pytest.mark.parametrize("hidden", [(), (0, 3)])
@pytest.mark.parametrize("causal", [True, False])
def test_prefix_sums_equal_the_masked_matrix(hidden: tuple[int, ...], causal: bool) -> None:
    mask = np.tril(np.ones((6, 6), dtype=bool)) if causal else np.ones((6, 6), dtype=bool)
    mask[:, list(hidden)] = False
    v = vectors(9)
    omega = draw_omega(12, D_K, 1)
    for features in (elu_features, lambda x: positive_features(x, omega)):
        logs = features(vectors(10, size=2)), features(vectors(11, size=2))
        np.testing.assert_allclose(recurrent_attention(*logs, v, mask), kernel_weights(*logs, mask) @ v, atol=1e-12)


def test_a_sliding_window_is_no_running_sum(attention) -> None:
    n = len(attention.key_tokens)
    band = np.tril(np.ones((n, n), dtype=bool)) & ~np.tril(np.ones((n, n), dtype=bool), -2)
    logs = np.zeros((n, 3)), np.zeros((n, 3))
    with pytest.raises(ValueError, match="running sum"):
        recurrent_attention(*logs, np.ones((n, 2)), band)
    run = linear_attention(attention, 0, 16, 0)
    assert run.recurrence < 1e-12
    if attention.mask[0].shape == band.shape:
        assert (
            linear_attention(replace(attention, mask=np.stack([band] * attention.n_heads)), 0, 16, 0).recurrence is None
        )
    assert linear_attention(replace(attention, bias=attention.scores), 0, 16, 0).recurrence is None
    zeros = replace(attention, bias=np.zeros_like(attention.scores))
    assert linear_attention(zeros, 0, 16, 0).recurrence == run.recurrence


def test_errors_fall_with_the_number_of_features(attention) -> None:
    sweep = sweep_features(attention, 1)
    assert sweep.weights.shape == sweep.z.shape == (DRAWS, len(FEATURES))
    for band in (sweep.weights_band, sweep.z_band):
        assert band[1, -1] < band[1, 0]
        assert (band[0] <= band[1]).all()
        assert (band[1] <= band[2]).all()
    assert sweep.weights_limit < 1e-5
    assert sweep.z_limit < 1e-5


def test_short_vectors_are_close_with_many_features(attention) -> None:
    """With a bias and a temperature as the run has them."""
    bias = np.random.default_rng(0).normal(size=attention.scores.shape)
    tau = np.full(attention.n_heads, 0.5)
    q, k = attention.q / 4, attention.k / 4
    scores = (q.astype(float) @ k.swapaxes(1, 2) * attention.scale + bias) / 0.5
    weights = softmax(np.where(attention.mask, scores, -np.inf))
    short = replace(attention, q=q, k=k, bias=bias, temperature=tau, pattern=weights)
    sweep = sweep_features(short, 0)
    assert sweep.weights_limit < 1e-6
    assert sweep.weights_band[1, -1] < 0.05
    assert sweep.weights_band[1, -1] < sweep.weights_band[1, 0] / 4


def test_a_cap_of_the_scores_is_an_error_that_stays(attention) -> None:
    capped = np.where(attention.mask, np.tanh(attention.scaled), -np.inf)
    sweep = sweep_features(replace(attention, softcap=1.0, pattern=softmax(capped)), 0)
    assert sweep.weights_limit > 1e-3
    changed = replace(attention, pattern=attention.mask / attention.mask.sum(axis=-1, keepdims=True))
    assert sweep_features(changed, 0).weights_limit > 1e-3


def test_a_map_is_one_draw_of_the_sweep(attention) -> None:
    sweep = sweep_features(attention, 2)
    for draw, column in ((0, 0), (5, 4), (DRAWS - 1, len(FEATURES) - 1)):
        run = linear_attention(attention, 2, FEATURES[column], draw)
        assert run.weight_errors[1] == pytest.approx(sweep.weights[draw, column])
        assert run.z_errors[1] == pytest.approx(sweep.z[draw, column])
        of_run = attention.pattern[2].astype(float)
        assert run.weight_errors[1] == pytest.approx(total_variation(of_run, run.random).mean())
        z, exact = run.random @ attention.v[2], of_run @ attention.v[2]
        assert run.z_errors[1] == pytest.approx(np.linalg.norm(z - exact) / np.linalg.norm(exact))


def test_the_fewest_features_that_are_close_are_said(attention) -> None:
    sweep = replace(sweep_features(attention, 0), features=np.array([4, 8, 16]))
    assert replace(sweep, z_band=np.array([[0, 0, 0], [0.5, 0.09, 0.05], [1, 1, 1]])).enough(0.1) == 8
    assert replace(sweep, z_band=np.array([[0, 0, 0], [0.5, 0.4, 0.3], [1, 1, 1]])).enough(0.1) is None
