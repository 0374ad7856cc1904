"""FlashAttention, tile by tile: exact for every tile size, and each step is the attention over the keys read so far."""

from dataclasses import replace

import numpy as np
import pytest

from model.analysis.mechanisms.flash import MOST_TILES, count_read_tiles, flash_attention, fused_kernel, tile_sizes
from model.analysis.written.of_scores import weight_with_score
from model.trace import Attention
from tests.model.by_hand import softmax
from tests.model.checkpoints.test_language_model import opened
from tests.model.strategies import KINDS


@pytest.fixture(scope="module", params=KINDS)
def attention(request, translator) -> Attention:
    return translator.trace("A dog runs and a cat sat.", "Ein Hund rennt.").attention(request.param, 1)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 64])
def test_the_output_is_that_of_the_run_whatever_the_tiles(attention, size: int) -> None:
    for head in range(attention.n_heads):
        run = flash_attention(attention, head, size)
        assert len(run.rows) == count_read_tiles(attention.mask[head], size)
        assert run.difference < 8 * run.rounding
        assert run.rounding < 1e-5
        np.testing.assert_allclose(run.o[-1], attention.z[head], atol=1e-5)
        np.testing.assert_allclose(
            run.scores[attention.mask[head]], attention.scaled[head][attention.mask[head]], atol=1e-4
        )


def test_each_step_is_the_attention_over_the_keys_that_were_read(attention) -> None:
    run = flash_attention(attention, 2, 3)
    seen = np.zeros(attention.mask[2].shape, dtype=bool)
    for step, ((top, bottom), (left, right)) in enumerate(zip(run.rows, run.columns, strict=True), start=1):
        assert attention.mask[2, top:bottom, left:right].any(), "a masked tile is not read"
        seen[top:bottom, left:right] = attention.mask[2, top:bottom, left:right]
        for query, row in enumerate(seen):
            if row.any():
                scores = run.scores[query, row]
                assert run.m[step, query] == scores.max()
                assert run.l[step, query] == pytest.approx(np.exp(scores - scores.max()).sum())
                assert run.o[step, query] == pytest.approx(softmax(scores) @ attention.v[2][row].astype(float))
            else:
                assert (run.m[step, query], run.l[step, query]) == (-np.inf, 0)
                assert not run.o[step, query].any()
    changed = np.isfinite(run.m[:-1]) & (run.m[1:] > run.m[:-1])
    before, after = run.m[:-1][changed], run.m[1:][changed]
    np.testing.assert_allclose(run.rescaling[changed], np.exp(before - after))
    assert (run.rescaling[changed] < 1).all()
    assert len(run.rows) + len(run.skipped) == np.prod(np.ceil(np.array(seen.shape) / 3))
    np.testing.assert_array_equal(seen, attention.mask[2])


@pytest.fixture(scope="module")
def changed(attention) -> Attention:
    """With a bias, a soft cap of 2, a sink, and a temperature of 1/2."""
    random, tau = np.random.default_rng(0), np.full(attention.n_heads, 0.5)
    bias, sink = random.normal(size=attention.scores.shape).astype(np.float32), random.normal(size=attention.n_heads)
    return replace(attention, bias=bias, softcap=2.0, sink=sink, temperature=tau)


def test_temperature_bias_soft_cap_and_sink_are_part_of_the_scores(attention, changed) -> None:
    run = flash_attention(changed, 1, 2)
    scores = np.where(attention.mask[1], changed.pre_softmax[1].astype(float) / 0.5, -np.inf)
    with_sink = np.concatenate([scores, np.full((len(scores), 1), changed.sink[1])], axis=1)
    np.testing.assert_allclose(run.o[-1], softmax(with_sink)[:, :-1] @ attention.v[1], atol=1e-5)
    assert fused_kernel(changed, 1, "cpu") is None
    warm = replace(attention, bias=changed.bias, temperature=changed.temperature)
    scores = np.where(attention.mask[1], warm.pre_softmax[1].astype(float) / 0.5, -np.inf)
    expected = replace(warm, pattern=np.stack([softmax(scores)] * attention.n_heads))
    assert fused_kernel(expected, 1, "cpu")[1] < 1e-5


def test_a_key_keeps_its_weight_with_its_own_score_and_gains_with_a_larger_one(attention, changed) -> None:
    sink, bias = changed.sink, changed.bias
    row, key = np.argwhere(attention.mask[1])[-1]
    scores = np.where(attention.mask[1, row], changed.pre_softmax[1, row].astype(float) / 0.5, -np.inf)
    own = softmax(np.append(scores, sink[1]))[key]
    score = float(attention.scores[1, row, key])
    assert weight_with_score(changed, 1, row, key, score) == pytest.approx(own, rel=1e-5)
    scores[key] = (2 * np.tanh((score + 3) * attention.scale / 2) + bias[1, row, key]) / 0.5
    assert weight_with_score(changed, 1, row, key, score + 3) == pytest.approx(softmax(np.append(scores, sink[1]))[key])


def test_large_scores_round_more_and_that_is_no_change(attention) -> None:
    large = replace(attention, q=attention.q * 30, scaled=attention.scaled * 30)
    scores = np.where(attention.mask, large.scaled, -np.inf).astype(np.float32)
    run = flash_attention(replace(large, pattern=softmax(scores)), 0, 2)
    assert run.rounding == pytest.approx(np.finfo(np.float32).eps * np.abs(scores[0][attention.mask[0]]).max())
    assert run.difference < 8 * run.rounding


def test_a_change_after_q_and_k_shows_as_a_difference(attention) -> None:
    keys = attention.pattern.shape[-1]
    changed = replace(attention, pattern=np.full_like(attention.pattern, 1 / keys))
    run = flash_attention(changed, 0, 2)
    assert run.difference > 100 * run.rounding


def test_a_model_that_rotates_and_shares_keys(translator) -> None:
    attention = opened(translator.tokenizer).trace("A dog runs.", max_new_tokens=4).attention("decoder_self", 0)
    assert attention.rotary is not None
    assert len(set(attention.kv_head)) < attention.n_heads
    for head in range(attention.n_heads):
        run = flash_attention(attention, head, 2)
        assert run.difference < 8 * run.rounding


def test_the_fused_kernel_has_a_name_and_rounds_only(attention) -> None:
    name, difference = fused_kernel(attention, 0, "cpu")
    assert name.isupper()
    assert difference < 1e-5


def test_sizes_give_few_tiles_and_more_than_one(attention) -> None:
    queries, keys = attention.pattern.shape[1:]
    for size in tile_sizes(attention):
        run = flash_attention(attention, 0, size)
        assert 1 < len(run.rows) + len(run.skipped) <= MOST_TILES
        assert run.square_bytes == 4 * queries * keys
    assert run.tile_bytes > 4 * min(size, queries) * min(size, keys)
