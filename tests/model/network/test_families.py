"""Language models and masked language models: built of the paper's blocks, and of the parts that came after it."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from model.hooks import hook_points, recording
from model.network.config import PAD, TransformerConfig
from model.network.masks import alibi_bias, alibi_slopes, window_mask
from model.network.network import Network
from model.network.rotary import Rotary
from tests.model.strategies import few
from tests.model.tiny import random_model

TOLERANCE = 1e-10
PLAIN = TransformerConfig(60, 16, 4, 24, n_encoder_layers=0, n_decoder_layers=2, dropout=0.0, max_len=32)


@st.composite
def parts(draw: st.DrawFn) -> dict:
    """Any mix of the parts that a configuration names."""
    return {
        "norm": draw(st.sampled_from(["post", "pre"])),
        "positions": draw(st.sampled_from(["sinusoidal", "learned", "rope", "alibi", "none"])),
        "activation": draw(st.sampled_from(["relu", "gelu", "swiglu", "geglu"])),
        "norm_function": draw(st.sampled_from(["layer_norm", "rms_norm"])),
        "n_kv_heads": draw(st.sampled_from([0, 1, 2, 4])),
        "window": draw(st.sampled_from([0, 1, 3])),
        "d_key": draw(st.sampled_from([0, 2, 6])),
        **{
            name: draw(st.booleans())
            for name in ("biases", "qk_norm", "tie_embeddings", "scale_embeddings", "scale_scores")
        },
    }


def network(**changes: object) -> Network:
    return random_model(replace(PLAIN, **changes), dtype=torch.float64)


def tokens(*shape: int) -> torch.Tensor:
    return torch.randint(4, 60, shape, generator=torch.Generator().manual_seed(0))


@few
@given(parts())
@torch.inference_mode()
def test_one_step_at_a_time_and_all_at_once_give_the_same_logits(changes):
    model, ids = network(**changes), tokens(2, 7)
    cache, at_once = model.new_cache(), model(ids)
    stepwise = torch.stack([model.decode_next(ids[:, t], t, cache) for t in range(7)], dim=1)
    assert (stepwise - at_once).abs().max() < TOLERANCE


@few
@given(parts(), st.sampled_from([(0, 2), (2, 0), (2, 2)]))
@torch.inference_mode()
def test_the_path_through_every_hook_point_and_the_fused_one_agree(changes, layers):
    """A point that is never called would make an intervention there do nothing, silently."""
    model = network(**changes, n_encoder_layers=layers[0], n_decoder_layers=layers[1])
    inputs = [tokens(2, 6)] * (2 if all(layers) else 1)
    fused = model(*inputs)
    with recording(model) as activations:
        explicit = model(*inputs)
    assert (fused - explicit).abs().max() < TOLERANCE
    assert activations.keys() == hook_points(model).keys()


@few
@given(parts())
@torch.inference_mode()
def test_a_language_model_never_looks_ahead_and_a_masked_one_does(changes):
    ids = tokens(1, 8)
    other = ids.clone()
    other[0, 5] = 4 + (ids[0, 5] - 3) % 56
    causal = network(**changes)
    assert torch.equal(causal(ids)[0, :5], causal(other)[0, :5])
    both = network(**changes | {"window": 0}, n_encoder_layers=2, n_decoder_layers=0)
    assert not torch.equal(both(ids)[0, 0], both(other)[0, 0])


@few
@given(parts(), st.sampled_from([(0, 2), (2, 0)]))
@torch.inference_mode()
def test_padding_changes_nothing(changes, layers):
    model = network(**changes, n_encoder_layers=layers[0], n_decoder_layers=layers[1])
    alone = tokens(1, 5)
    padded = torch.cat([alone, torch.full((1, 3), PAD)], dim=1)
    assert (model(padded)[:, :5] - model(alone)).abs().max() < TOLERANCE


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 11))
def test_rotated_scores_depend_on_the_distance_alone(i, j, shift):
    """Su et al. 2021, equation 16; and a rotation keeps the length of a vector."""
    turn = Rotary(d_k=8, max_len=32, base=100).double()
    q, k = torch.randn(2, 1, 1, 1, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(i))
    score = (turn(q, i) * turn(k, j)).sum()
    assert torch.isclose(score, (turn(q, i + shift) * turn(k, j + shift)).sum(), rtol=0, atol=1e-5)
    assert torch.isclose(turn(q, i).norm(), q.norm(), rtol=1e-6)
    assert torch.equal(turn(q, 0), q)


def test_a_window_shows_the_nearest_keys_and_alibi_lowers_far_ones():
    assert window_mask(2, 5, 2)[0, 0].tolist() == [[False, False, True, True, True], [False, False, False, True, True]]
    assert window_mask(3, 3, 0).all()


def test_slopes_of_eight_heads_are_those_printed_in_the_paper() -> None:
    assert alibi_slopes(8).tolist() == [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 9))
def test_the_bias_falls_by_the_slope_with_every_step_away(heads: int, queries: int, earlier: int) -> None:
    bias = alibi_bias(heads, queries, earlier + queries)[0]
    assert bias.shape == (heads, queries, earlier + queries)
    for by_row, slope in zip(bias, alibi_slopes(heads), strict=True):
        assert by_row[0, earlier] == 0, "the first query stands at the position of this key"
        assert by_row[0, : earlier + 1].diff().numpy() == pytest.approx(slope.item())
        assert by_row[0, earlier:].diff().numpy() == pytest.approx(-slope.item())
        assert all(len(set(by_row.diagonal(offset).tolist())) == 1 for offset in range(1 - queries, earlier))
    assert torch.equal(bias[..., earlier:], bias[..., earlier:].mT)


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
@torch.inference_mode()
def test_heads_of_one_group_share_their_keys_and_values_and_the_cache_keeps_them_once(kv_heads):
    model = network(n_kv_heads=kv_heads)
    with recording(model) as activations:
        model(tokens(1, 5))
    for name in "kv":
        heads = activations[f"decoder.layers.1.self_attn.{name}"][0]
        groups = heads.unflatten(0, (kv_heads, 4 // kv_heads))
        assert torch.equal(groups, groups[:, :1].expand_as(groups))
    cache = model.new_cache()
    model.decode_next(tokens(1), 0, cache)
    assert cache[1].k.shape == (1, kv_heads, 1, 4)
