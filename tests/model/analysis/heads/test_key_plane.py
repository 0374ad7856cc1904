"""The plane of a head's keys: nothing of a query is lost by splitting it, whatever the model."""

from dataclasses import replace

import numpy as np
import pytest

from model.analysis.heads.key_plane import convex_hull, key_plane
from model.trace import Array, Attention
from tests.model.strategies import shaped

SENTENCES = ("A dog runs through the snow.", "A dog")


@pytest.fixture(params=["the translator", "pre, RMSNorm, RoPE, wide shared keys", "ALiBi, norm of queries and keys"])
def attentions(request, translator):
    opened = translator if request.param == "the translator" else shaped(request.param, "language model")
    return list(opened.trace(SENTENCES[0]).attentions.values())


def weights_of_moved_query(attention: Attention, head: int, row: int, point: Array) -> Array:
    """(key,): the weights of query `row` with its part in the plane at `point`, (2,), as own_vectors.js has them."""
    plane = key_plane(attention, head)
    x = attention.scale * (plane.keys + plane.mean) @ point + plane.rest[row]
    if attention.bias is not None:
        x = x + attention.bias[head, row]
    powers = np.where(attention.mask[head, row], np.exp(x - x.max()), 0)
    return powers / powers.sum()


def test_a_query_that_is_not_moved_has_the_weights_of_the_run(attentions) -> None:
    for attention in attentions:
        head = attention.n_heads - 1
        plane = key_plane(attention, head)
        for row, pattern in enumerate(attention.pattern[head]):
            weights = weights_of_moved_query(attention, head, row, plane.queries[row])
            assert weights == pytest.approx(pattern, abs=1e-5)
            assert not weights[~attention.mask[head, row]].any()


def test_a_query_moved_to_where_another_one_is_differs_from_it_by_the_rest_alone(attentions) -> None:
    attention = attentions[0]
    plane = key_plane(attention, 0)
    own = replace(attention, q=attention.q.copy())
    outside = attention.q[0, 1] - plane.queries[1] @ plane.axes
    own.q[0, 1] = plane.queries[2] @ plane.axes + outside
    x = attention.scale * own.k[0].astype(np.float64) @ own.q[0, 1]
    x = x if attention.bias is None else x + attention.bias[0, 1]
    x = np.where(attention.mask[0, 1], x, -np.inf)
    expected = np.exp(x - x.max()) / np.exp(x - x.max()).sum()
    assert weights_of_moved_query(attention, 0, 1, plane.queries[2]) == pytest.approx(expected, abs=1e-5)


def test_the_plane_holds_the_two_largest_variances_of_the_keys(attentions) -> None:
    for attention in attentions:
        plane = key_plane(attention, 0)
        k = attention.k[0].astype(np.float64)
        variances = np.linalg.eigvalsh(np.cov(k.T))[::-1]
        assert plane.axes @ plane.axes.T == pytest.approx(np.eye(2), abs=1e-12)
        assert plane.shares == pytest.approx(variances[:2] / variances.sum(), abs=1e-9)
        assert plane.keys.var(axis=0, ddof=1) == pytest.approx(variances[:2], rel=1e-6)
        assert np.hypot(plane.outside, np.linalg.norm(plane.queries, axis=1)) == pytest.approx(
            np.linalg.norm(attention.q[0].astype(np.float64), axis=1)
        )


def test_one_key_and_two_keys_have_a_plane_too(translator) -> None:
    for keys in (1, 2):
        full = translator.trace(SENTENCES[1]).attention("encoder_self", 0)
        names = ("q", "k", "v", "scores", "scaled", "mask", "pattern", "z", "query_input", "key_input", "out")
        both = ("scores", "scaled", "mask", "pattern")
        cut = {
            name: array[..., :keys, :keys] if name in both else array[..., :keys, :]
            for name, array in ((name, getattr(full, name)) for name in names)
        }
        small = replace(full, query_tokens=full.query_tokens[:keys], key_tokens=full.key_tokens[:keys], **cut)
        plane = key_plane(small, 0)
        assert plane.keys.shape == (keys, 2)
        assert np.isfinite(plane.shares).all()
        assert weights_of_moved_query(small, 0, 0, np.array([1.0, 1.0])).sum() == pytest.approx(1)


@pytest.mark.parametrize("points", [1, 2, 3, 30])
def test_no_point_and_no_weighted_mean_of_points_lies_outside_their_hull(points: int) -> None:
    numbers = np.random.default_rng(points)
    drawn = numbers.standard_normal((points, 2))
    drawn[-1] = drawn[0]
    hull = drawn[convex_hull(drawn)]
    mixed = numbers.dirichlet(np.ones(points), 100) @ drawn
    for start, end in zip(hull, np.roll(hull, -1, axis=0), strict=True):
        across, up = end - start
        for x, y in (np.concatenate([drawn, mixed]) - start).tolist():
            assert across * y - up * x > -1e-9, "to the left of every side"


def test_a_point_on_a_side_is_no_corner_and_many_points_in_one_place_are_one() -> None:
    square = np.array([[0, 0], [1, 0], [2, 0], [2, 2], [0, 2], [1, 1]], float)
    assert sorted(convex_hull(square)) == [0, 2, 3, 4]
    assert {*map(tuple, square[[4] * 5][convex_hull(square[[4] * 5])])} == {(0, 2)}
