"""A sliding cache, computed for all tokens at once, is what a model computes that drops keys token by token."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from model.analysis.long.streaming import (
    SINKS,
    CachedTokens,
    cache_bytes,
    compare,
    kept_keys,
    strategies,
    stream,
    why_no_streaming,
)
from model.network.rotary import rotate
from tests.model.analysis.long.test_long_run import TEXT, opened
from tests.model.checkpoints.test_language_model import opened as language_model

WINDOW = 9
KEPT = strategies(WINDOW + SINKS)


@torch.inference_mode()
def token_by_token(checkpoint, ids: list[int], window: int, sinks: int, in_cache: bool) -> np.ndarray:
    """Xiao et al. 2024: each layer keeps keys before rotation, and drops those between the first and the last ones."""
    model = checkpoint.model
    caches = [[] for _ in model.decoder.layers]
    found = []
    for t, token in enumerate(ids):
        x = model.tgt_embedding(torch.tensor([[token]]))
        for layer, cache in zip(model.decoder.layers, caches, strict=True):
            attention = layer.self_attn

            def attend(x, attention=attention, cache=cache, t=t):
                heads = lambda w, n: w(x)[0, 0].unflatten(0, (n, -1))  # noqa: E731
                q, k = heads(attention.w_q, attention.n_heads), heads(attention.w_k, attention.n_kv_heads)
                if attention.qk_norm:
                    q, k = attention.q_norm(q), attention.k_norm(k)
                cache.append((t, k, heads(attention.w_v, attention.n_kv_heads)))
                if len(cache) > window + sinks:
                    del cache[sinks]
                places = list(range(len(cache))) if in_cache else [place for place, _, _ in cache]
                rotary, share = attention.rotary, attention.n_heads // attention.n_kv_heads
                cos, sin = rotary.cos, rotary.sin
                q = rotate(q, cos[places[-1]], sin[places[-1]])
                keys = torch.stack(
                    [rotate(k, cos[p], sin[p]) for p, (_, k, _) in zip(places, cache, strict=True)], dim=1
                )
                values = torch.stack([v for _, _, v in cache], dim=1)
                scores = torch.einsum("hd,hjd->hj", q, keys.repeat_interleave(share, 0)) / attention.divisor
                z = torch.einsum("hj,hjd->hd", scores.softmax(-1), values.repeat_interleave(share, 0))
                return attention.w_o(z.flatten())[None, None]

            x = layer.self_attn_residual(x, attend)
            x = layer.feed_forward_residual(x, layer.feed_forward)
        found.append(model.output(model.decoder.final_norm(x))[0, 0].double().log_softmax(-1))
    return np.array([float(found[t][ids[t + 1]]) for t in range(len(ids) - 1)])


@pytest.mark.parametrize("kept", KEPT[1:], ids=lambda kept: kept.name)
def test_all_tokens_at_once_are_as_token_by_token(kept: CachedTokens) -> None:
    checkpoint = opened("language model")
    ids = list(checkpoint.trace(TEXT).tgt_ids)
    assert len(ids) > 2 * (WINDOW + SINKS)
    expected = token_by_token(checkpoint, ids, kept.window, kept.sinks, kept.in_cache or not kept.sinks)
    np.testing.assert_allclose(stream(checkpoint, TEXT, kept), expected, rtol=2e-3, atol=2e-3)


def test_positions_in_the_cache_make_a_difference_only_beyond_it() -> None:
    checkpoint = opened("language model")
    *_, text, cache = (stream(checkpoint, TEXT, kept) for kept in KEPT)
    np.testing.assert_array_equal(text[: WINDOW + SINKS - 1], cache[: WINDOW + SINKS - 1])
    assert np.abs(text - cache).max() > 1e-3


def test_all_tokens_are_the_run_itself() -> None:
    checkpoint = opened("language model")
    expected = checkpoint.trace(TEXT).target_log_probabilities[:-1]
    np.testing.assert_allclose(stream(checkpoint, TEXT, KEPT[0]), expected, rtol=1e-3, atol=1e-3)
    *_, (share, found) = compare(checkpoint, TEXT, WINDOW)
    assert share == 1
    assert list(found) == [kept.name for kept in strategies(WINDOW)]


def test_each_query_sees_as_many_keys_as_the_cache_has_room_for() -> None:
    for kept in KEPT[1:]:
        assert kept_keys(kept, 40)[20:].sum(-1).unique().tolist() == [WINDOW + SINKS]


@pytest.mark.parametrize(("d_key", "kv_heads"), [(0, 4), (12, 2), (4, 1)])
def test_cache_bytes_are_those_of_keys_and_values(d_key: int, kv_heads: int, tokenizer) -> None:
    """In the arrays of a run, also where heads are shared and keys are wider or narrower than values."""
    checkpoint = language_model(tokenizer, d_key=d_key, n_kv_heads=kv_heads)
    attentions = checkpoint.trace("Two dogs run.").attentions.values()
    n = len(next(iter(attentions)).key_tokens)
    kept = sum(len(set(a.kv_head)) * (a.k[0].nbytes + a.v[0].nbytes) for a in attentions)
    assert cache_bytes(checkpoint, n) == kept


@pytest.mark.parametrize("family", ["masked language model", "no positions", "sinusoids"])
def test_models_that_cannot_stream_say_why(family: str) -> None:
    checkpoint = opened(family)
    assert why_no_streaming(checkpoint)
    with pytest.raises(ValueError, match=r"."):
        stream(checkpoint, TEXT, replace(KEPT[1], window=3))
