"""The plane of a head's keys: nothing of a query is lost by splitting it, whatever the model."""

from dataclasses import replace

import numpy as np
import pytest

from model.analysis.heads.key_plane import key_plane
from model.checkpoints.language_model import LanguageModel
from model.network.config import TransformerConfig
from model.trace import Array, Attention
from tests.model.tiny import random_model

SENTENCES = ("A dog runs through the snow.", "A dog")


@pytest.fixture(params=["translator", "language model with RoPE and shared keys", "language model with ALiBi"])
def attentions(request, translator, tokenizer):
    opened = translator
    if request.param != "translator":
        parts = {"positions": "rope", "n_kv_heads": 2} if "RoPE" in request.param else {"positions": "alibi"}
        config = TransformerConfig(len(tokenizer), d_model=16, n_heads=4, d_ff=32, n_encoder_layers=0, **parts)
        opened = LanguageModel("random", "0" * 64, random_model(config), tokenizer)
    return list(opened.trace(SENTENCES[0]).attentions.values())


def weights_of_moved_query(attention: Attention, head: int, row: int, point: Array) -> Array:
    """(key,): the weights of query `row` with its part in the plane at `point`, (2,), as move_query.js has them."""
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
